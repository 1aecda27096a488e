"""MedMNIST: its twelve sets of 28x28 images but one, ChestMNIST, whose images have several labels each."""

from __future__ import annotations

from functools import partial

from varclass.data.entry import Entry, Source
from varclass.data.readers.arrays import read_medmnist

ORGANS = (
    *("bladder", "femur-left", "femur-right", "heart", "kidney-left", "kidney-right"),
    *("liver", "lung-left", "lung-right", "pancreas", "spleen"),
)


def medmnist(name: str, about: str, samples: tuple[int, int, int], md5: str, classes: tuple[str, ...], **other: str) -> Entry:
    """A set of MedMNIST (version 3, 28x28): one .npz file with three splits."""
    path = f"medmnist/{name}.npz"
    source = Source(path, (f"https://zenodo.org/records/10519652/files/{name}.npz?download=1",), None, f"md5:{md5}")
    counts = dict(zip(("train", "validation", "test"), samples, strict=True))
    return Entry(
        name=name,
        about=about,
        kind="image",
        num_classes=len(classes),
        samples=counts,
        license=other.get("license", "CC BY 4.0"),
        homepage="https://medmnist.com",
        read=partial(read_medmnist, classes=classes),
        files=dict.fromkeys(counts, (path,)),
        sources=(source,),
    )


MEDMNIST = (
    medmnist(
        "pathmnist",
        "tissue of the colon under the microscope, 28x28 color",
        (89_996, 10_004, 7_180),
        "a8b06965200029087d5bd730944a56c1",
        (
            "adipose",
            "background",
            "debris",
            "lymphocytes",
            "mucus",
            "smooth muscle",
            "normal colon mucosa",
            "cancer-associated stroma",
            "colorectal adenocarcinoma epithelium",
        ),
    ),
    medmnist(
        "dermamnist",
        "pigmented lesions of the skin, 28x28 color",
        (7_007, 1_003, 2_005),
        "0744692d530f8e62ec473284d019b0c7",
        (
            "actinic keratoses and intraepithelial carcinoma",
            "basal cell carcinoma",
            "benign keratosis-like lesions",
            "dermatofibroma",
            "melanoma",
            "melanocytic nevi",
            "vascular lesions",
        ),
        license="CC BY-NC 4.0",
    ),
    medmnist(
        "octmnist",
        "retinas by optical coherence tomography, 28x28 gray",
        (97_477, 10_832, 1_000),
        "c68d92d5b585d8d81f7112f81e2d0842",
        ("choroidal neovascularization", "diabetic macular edema", "drusen", "normal"),
    ),
    medmnist(
        "pneumoniamnist",
        "chest X-rays of children, 28x28 gray",
        (4_708, 524, 624),
        "28209eda62fecd6e6a2d98b1501bb15f",
        ("normal", "pneumonia"),
    ),
    medmnist(
        "retinamnist",
        "retinas by grade of diabetic retinopathy, 28x28 color; the grades are ordered, here they are classes",
        (1_080, 120, 400),
        "bd4c0672f1bba3e3a89f0e4e876791e4",
        ("0", "1", "2", "3", "4"),
    ),
    medmnist(
        "breastmnist",
        "ultrasound images of the breast, 28x28 gray",
        (546, 78, 156),
        "750601b1f35ba3300ea97c75c52ff8f6",
        ("malignant", "normal, benign"),
    ),
    medmnist(
        "bloodmnist",
        "blood cells under the microscope, 28x28 color",
        (11_959, 1_712, 3_421),
        "7053d0359d879ad8a5505303e11de1dc",
        ("basophil", "eosinophil", "erythroblast", "immature granulocytes", "lymphocyte", "monocyte", "neutrophil", "platelet"),
    ),
    medmnist(
        "tissuemnist",
        "cells of the kidney's cortex, 28x28 gray",
        (165_466, 23_640, 47_280),
        "ebe78ee8b05294063de985d821c1c34b",
        (
            "collecting duct, connecting tubule",
            "distal convoluted tubule",
            "glomerular endothelial cells",
            "interstitial endothelial cells",
            "leukocytes",
            "podocytes",
            "proximal tubule segments",
            "thick ascending limb",
        ),
    ),
    medmnist(
        "organamnist",
        "organs in axial slices of CT scans, 28x28 gray",
        (34_561, 6_491, 17_778),
        "68e3f8846a6bd62f0c9bf841c0d9eacc",
        ORGANS,
    ),
    medmnist(
        "organcmnist",
        "organs in coronal slices of CT scans, 28x28 gray",
        (12_975, 2_392, 8_216),
        "b9ceb9546e10131b32923c5bbeaea2b1",
        ORGANS,
    ),
    medmnist(
        "organsmnist",
        "organs in sagittal slices of CT scans, 28x28 gray",
        (13_932, 2_452, 8_827),
        "9ab87b696fb54e2a387ebe992d6ed5f1",
        ORGANS,
    ),
)
