"""Published image sets."""

from __future__ import annotations

from functools import partial

from varclass.data.entry import Entry, Source
from varclass.data.readers.camelyon17 import read_camelyon17
from varclass.data.readers.celeba import read_celeba
from varclass.data.readers.cifar import read_cifar10, read_cifar100
from varclass.data.readers.digits import read_digits
from varclass.data.readers.idx import read_images
from varclass.data.readers.image_folder import read_tiny_imagenet
from varclass.data.readers.svhn import read_svhn

DIGITS = tuple("0123456789")
CLOTHES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
KUZUSHIJI = ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo")
OBJECTS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
MNIST_URLS = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/")
FASHION_URL = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
KUZUSHIJI_URL = "http://codh.rois.ac.jp/kmnist/dataset/kmnist/"
CELEBA_URL = "https://drive.usercontent.google.com/download?export=download&confirm=t&id="
CIFAR10_FILES = tuple(f"cifar-10-batches-bin/data_batch_{number}.bin" for number in range(1, 6))


def idx(name: str, about: str, license: str, homepage: str, classes: tuple[str, ...], *four: Source) -> Entry:
    """A set of MNIST's form: 60,000 and 10,000 images of 28x28, in files of images and labels."""
    paths = tuple(source.path for source in four)
    files = {"train": paths[:2], "test": paths[2:]}
    samples = {"train": 60_000, "test": 10_000}
    read = partial(read_images, classes=classes)
    return Entry(name, about, "image", 10, samples, license, homepage, read, files, four)


def idx_file(folder: str, file: str, size: int, md5: str, content: str | None, *addresses: str) -> Source:
    """One of the four files, at any of several addresses."""
    urls = tuple(address + file for address in addresses)
    unpacked = f"md5:{content}" if content else None
    return Source(f"{folder}/{file}", urls, size, f"md5:{md5}", unpacked)


IMAGES = (
    Entry(
        name="digits",
        about="handwritten digits, 8x8 gray; comes with scikit-learn, nothing to download",
        kind="image",
        num_classes=10,
        samples={"train": 1_197, "test": 600},
        license="CC BY 4.0",
        homepage="https://archive.ics.uci.edu/dataset/80",
        read=read_digits,
        files={"train": (), "test": ()},
    ),
    idx(
        "mnist",
        "handwritten digits, 28x28 gray",
        "CC BY-SA 3.0",
        "http://yann.lecun.com/exdb/mnist/",
        DIGITS,
        idx_file(
            "MNIST/raw",
            "train-images-idx3-ubyte.gz",
            9_912_422,
            "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "6bbc9ace898e44ae57da46a324031adb",
            *MNIST_URLS,
        ),
        idx_file(
            "MNIST/raw",
            "train-labels-idx1-ubyte.gz",
            28_881,
            "d53e105ee54ea40749a09fcbcd1e9432",
            "a25bea736e30d166cdddb491f175f624",
            *MNIST_URLS,
        ),
        idx_file(
            "MNIST/raw",
            "t10k-images-idx3-ubyte.gz",
            1_648_877,
            "9fb629c4189551a2d022fa330f9573f3",
            "2646ac647ad5339dbf082846283269ea",
            *MNIST_URLS,
        ),
        idx_file(
            "MNIST/raw",
            "t10k-labels-idx1-ubyte.gz",
            4_542,
            "ec29112dd5afa0611ce80d1b7f02629c",
            "27ae3e4e09519cfbb04c329615203637",
            *MNIST_URLS,
        ),
    ),
    idx(
        "fashion_mnist",
        "articles of clothing, 28x28 gray",
        "MIT",
        "https://github.com/zalandoresearch/fashion-mnist",
        CLOTHES,
        idx_file(
            "FashionMNIST/raw",
            "train-images-idx3-ubyte.gz",
            26_421_880,
            "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "f4a8712d7a061bf5bd6d2ca38dc4d50a",
            FASHION_URL,
        ),
        idx_file(
            "FashionMNIST/raw",
            "train-labels-idx1-ubyte.gz",
            29_515,
            "25c81989df183df01b3e8a0aad5dffbe",
            "9018921c3c673c538a1fc5bad174d6f9",
            FASHION_URL,
        ),
        idx_file(
            "FashionMNIST/raw",
            "t10k-images-idx3-ubyte.gz",
            4_422_102,
            "bef4ecab320f06d8554ea6380940ec79",
            "8181f5470baa50b63fa0f6fddb340f0a",
            FASHION_URL,
        ),
        idx_file(
            "FashionMNIST/raw",
            "t10k-labels-idx1-ubyte.gz",
            5_148,
            "bb300cfdad3c16e7a12a480ee83cd310",
            "15d484375f8d13e6eb1aabb0c3f46965",
            FASHION_URL,
        ),
    ),
    idx(
        "kmnist",
        "handwritten Japanese characters (Kuzushiji), 28x28 gray",
        "CC BY-SA 4.0",
        "http://codh.rois.ac.jp/kmnist/",
        KUZUSHIJI,
        idx_file(
            "KMNIST/raw", "train-images-idx3-ubyte.gz", 18_165_135, "bdb82020997e1d708af4cf47b453dcf7", None, KUZUSHIJI_URL
        ),
        idx_file("KMNIST/raw", "train-labels-idx1-ubyte.gz", 29_497, "e144d726b3acfaa3e44228e80efcd344", None, KUZUSHIJI_URL),
        idx_file("KMNIST/raw", "t10k-images-idx3-ubyte.gz", 3_041_136, "5c965bf0a639b31b8f53240b1b52f4d7", None, KUZUSHIJI_URL),
        idx_file("KMNIST/raw", "t10k-labels-idx1-ubyte.gz", 5_120, "7320c461ea6c1c855c0b718fb2a4b134", None, KUZUSHIJI_URL),
    ),
    Entry(
        name="cifar10",
        about="small photographs of ten kinds of objects, 32x32 color",
        kind="image",
        num_classes=10,
        samples={"train": 50_000, "test": 10_000},
        license="not stated by the publisher",
        homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
        read=partial(read_cifar10, classes=OBJECTS),
        files={"train": CIFAR10_FILES, "test": ("cifar-10-batches-bin/test_batch.bin",)},
        sources=(
            Source(
                path="cifar-10-binary.tar.gz",
                urls=("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
                size=170_052_171,
                checksum="md5:c32a1d4ab5d03f1284b67883e8d87530",
                holds=(*CIFAR10_FILES, "cifar-10-batches-bin/test_batch.bin"),
            ),
        ),
    ),
    Entry(
        name="cifar100",
        about="small photographs of a hundred kinds of objects (the fine labels), 32x32 color",
        kind="image",
        num_classes=100,
        samples={"train": 50_000, "test": 10_000},
        license="not stated by the publisher",
        homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
        read=read_cifar100,
        files={
            "train": ("cifar-100-binary/train.bin", "cifar-100-binary/fine_label_names.txt"),
            "test": ("cifar-100-binary/test.bin", "cifar-100-binary/fine_label_names.txt"),
        },
        sources=(
            Source(
                path="cifar-100-binary.tar.gz",
                urls=("https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",),
                size=168_513_733,
                checksum="md5:03b5dce01913d631647c71ecec9e9cb8",
                holds=tuple(f"cifar-100-binary/{file}" for file in ("train.bin", "test.bin", "fine_label_names.txt")),
            ),
        ),
    ),
    Entry(
        name="svhn",
        about="digits cropped from photographs of house numbers, 32x32 color",
        kind="image",
        num_classes=10,
        samples={"train": 73_257, "test": 26_032},
        license="non-commercial use",
        homepage="http://ufldl.stanford.edu/housenumbers/",
        read=partial(read_svhn, classes=DIGITS),
        files={"train": ("SVHN/train_32x32.mat",), "test": ("SVHN/test_32x32.mat",)},
        sources=(
            Source(
                path="SVHN/train_32x32.mat",
                urls=("http://ufldl.stanford.edu/housenumbers/train_32x32.mat",),
                size=182_040_794,
                checksum="md5:e26dedcc434d2e4c54c9b2d4a06d8373",
            ),
            Source(
                path="SVHN/test_32x32.mat",
                urls=("http://ufldl.stanford.edu/housenumbers/test_32x32.mat",),
                size=64_275_384,
                checksum="md5:eb5a983be6a315427106f1b164d9cef3",
            ),
        ),
    ),
    Entry(
        name="tiny_imagenet",
        about="photographs of 200 kinds of objects, 64x64 color; test is the published validation set",
        kind="image",
        num_classes=200,
        samples={"train": 100_000, "test": 10_000},
        license="non-commercial research (ImageNet's terms)",
        homepage="http://cs231n.stanford.edu",
        read=read_tiny_imagenet,
        files={
            split: ("tiny-imagenet-200/wnids.txt", "tiny-imagenet-200/words.txt", f"tiny-imagenet-200/{folder}")
            for split, folder in {"train": "train", "test": "val"}.items()
        },
        sources=(
            Source(
                path="tiny-imagenet-200.zip",
                urls=("http://cs231n.stanford.edu/tiny-imagenet-200.zip",),
                size=248_100_043,
                checksum="md5:90528d7ca1a48142e341f4ef8d21d0de",
                holds=tuple(f"tiny-imagenet-200/{file}" for file in ("wnids.txt", "words.txt", "train", "val")),
            ),
        ),
    ),
    Entry(
        name="camelyon17",
        about="tumor or not in patches of lymph nodes, 96x96 color; test is another hospital than train (WILDS)",
        kind="image",
        num_classes=2,
        samples={"train": 302_436, "id_validation": 33_560, "validation": 34_904, "test": 85_054},
        license="CC0",
        homepage="https://wilds.stanford.edu/datasets/#camelyon17",
        read=read_camelyon17,
        files=dict.fromkeys(
            ("train", "id_validation", "validation", "test"), ("camelyon17_v1.0/metadata.csv", "camelyon17_v1.0/patches")
        ),
        sources=(
            Source(
                path="camelyon17_v1.0.tar.gz",
                urls=("https://worksheets.codalab.org/rest/bundles/0xe45e15f39fb54e9d9e919556af67aabe/contents/blob/",),
                size=10_658_709_504,
                holds=("camelyon17_v1.0/metadata.csv", "camelyon17_v1.0/patches"),
                into="camelyon17_v1.0",
            ),
        ),
    ),
    Entry(
        name="celeba",
        about="photographs of celebrities' faces, 218x178 color; smiling or not",
        kind="image",
        num_classes=2,
        samples={"train": 162_770, "validation": 19_867, "test": 19_962},
        license="non-commercial research",
        homepage="https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html",
        read=read_celeba,
        files=dict.fromkeys(
            ("train", "validation", "test"),
            ("celeba/list_eval_partition.txt", "celeba/list_attr_celeba.txt", "celeba/img_align_celeba"),
        ),
        sources=(
            Source(
                path="celeba/list_eval_partition.txt",
                urls=(f"{CELEBA_URL}0B7EVK8r0v71pY0NSMzRuSXJEVkk",),
                size=2_836_386,
                checksum="md5:d32c9cbf5e040fd4025c592c306e6668",
            ),
            Source(
                path="celeba/list_attr_celeba.txt",
                urls=(f"{CELEBA_URL}0B7EVK8r0v71pblRyaVFSWGxPY0U",),
                size=26_721_026,
                checksum="md5:75e246fa4810816ffd6ee81facbd244c",
            ),
            Source(
                path="celeba/img_align_celeba.zip",
                urls=(
                    f"{CELEBA_URL}0B7EVK8r0v71pZjFTYXZWM3FlRnM",
                    "https://s3-us-west-1.amazonaws.com/udacity-dlnfd/datasets/celeba.zip",
                ),
                size=1_443_490_838,
                checksum="md5:00d2c5bc6d35e252742224ab0c1e8fcb",
                holds=("celeba/img_align_celeba",),
                into="celeba",
            ),
        ),
    ),
)
