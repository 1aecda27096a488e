"""Published text sets."""

from __future__ import annotations

from functools import partial

from varclass.data.entry import Entry, Source
from varclass.data.readers.published_text import read_ag_news, read_clinc150, read_inference

TOPICS = ("World", "Sports", "Business", "Sci/Tech")
AG_NEWS_URL = "https://raw.githubusercontent.com/mhjabreel/CharCnn_Keras/master/data/ag_news_csv"
SNLI, MULTINLI = "snli_1.0/snli_1.0", "multinli_1.0/multinli_1.0"

INFERENCE_SOURCES = (
    Source(
        path="snli_1.0.zip",
        urls=("https://nlp.stanford.edu/projects/snli/snli_1.0.zip",),
        size=94_550_081,
        checksum="sha256:afb3d70a5af5d8de0d9d81e2637e0fb8c22d1235c2749d83125ca43dab0dbd3e",
        holds=tuple(f"{SNLI}_{part}.jsonl" for part in ("train", "dev", "test")),
    ),
    Source(
        path="multinli_1.0.zip",
        urls=("https://cims.nyu.edu/~sbowman/multinli/multinli_1.0.zip",),
        size=226_850_426,
        checksum="sha256:049f507b9e36b1fcb756cfd5aeb3b7a0cfcb84bf023793652987f7e7e0957822",
        holds=(f"{MULTINLI}_dev_matched.jsonl",),
    ),
    Source(
        path="SICK.zip",
        urls=("https://zenodo.org/record/2787612/files/SICK.zip?download=1",),
        size=217_584,
        checksum="sha256:da272af924399fc2de4889ed55383e38822c10d16c4a949a89d597d09a0b7912",
        holds=("sick/SICK.txt",),
        into="sick",
    ),
)

TEXTS = (
    Entry(
        name="ag_news",
        about="news by topic: title and first sentences",
        kind="text",
        num_classes=4,
        samples={"train": 120_000, "test": 7_600},
        license="non-commercial use",
        homepage="http://groups.di.unipi.it/~gulli/AG_corpus_of_news_articles.html",
        read=partial(read_ag_news, classes=TOPICS),
        files={"train": ("ag_news_csv/train.csv",), "test": ("ag_news_csv/test.csv",)},
        sources=(
            Source(
                path="ag_news_csv/train.csv",
                urls=(f"{AG_NEWS_URL}/train.csv",),
                size=29_470_338,
                checksum="md5:b1a00f826fdfbd249f79597b59e1dc12",
            ),
            Source(
                path="ag_news_csv/test.csv",
                urls=(f"{AG_NEWS_URL}/test.csv",),
                size=1_857_427,
                checksum="md5:d52ea96a97a2d943681189a97654912d",
            ),
        ),
    ),
    Entry(
        name="nli",
        about="does one sentence follow from another? SNLI, tested on SNLI, on MultiNLI (mnli) and on SICK (sick) too",
        kind="text",
        num_classes=3,
        samples={"train": 549_367, "validation": 9_842, "test": 9_824, "mnli": 9_815, "sick": 4_906},
        license="CC BY-SA 4.0 (SNLI), OANC (MultiNLI), CC BY-NC-SA 3.0 (SICK)",
        homepage="https://nlp.stanford.edu/projects/snli/",
        read=read_inference,
        files={
            "train": (f"{SNLI}_train.jsonl",),
            "validation": (f"{SNLI}_dev.jsonl",),
            "test": (f"{SNLI}_test.jsonl",),
            "mnli": (f"{MULTINLI}_dev_matched.jsonl",),
            "sick": ("sick/SICK.txt",),
        },
        sources=INFERENCE_SOURCES,
        instead={"sick/SICK.txt": "sick/sick_test.jsonl"},
    ),
    Entry(
        name="nli_dev",
        about="nli without SNLI's large training file: SNLI's dev pairs to train on, tested on the same splits",
        kind="text",
        num_classes=3,
        samples={"train": 9_842, "test": 9_824, "mnli": 9_815, "sick": 4_906},
        license="CC BY-SA 4.0 (SNLI), OANC (MultiNLI), CC BY-NC-SA 3.0 (SICK)",
        homepage="https://nlp.stanford.edu/projects/snli/",
        read=read_inference,
        files={
            "train": (f"{SNLI}_dev.jsonl",),
            "test": (f"{SNLI}_test.jsonl",),
            "mnli": (f"{MULTINLI}_dev_matched.jsonl",),
            "sick": ("sick/SICK.txt",),
        },
        sources=INFERENCE_SOURCES,
        instead={"sick/SICK.txt": "sick/sick_test.jsonl"},
    ),
    Entry(
        name="clinc150",
        about="queries to an assistant by intent, and queries that have none of the intents (oos, labeled -1)",
        kind="text",
        num_classes=150,
        samples={"train": 15_000, "validation": 3_000, "test": 4_500, "oos": 1_000},
        license="CC BY 3.0",
        homepage="https://github.com/clinc/oos-eval",
        read=read_clinc150,
        files=dict.fromkeys(("train", "validation", "test", "oos"), ("clinc150/data_full.json",)),
        sources=(
            Source(
                path="clinc150/data_full.json",
                urls=("https://raw.githubusercontent.com/clinc/oos-eval/master/data/data_full.json",),
                size=2_495_390,
                checksum="sha256:36923c3705a59e08fe9c3883d8bc2dd966ef93e22cb78ac41171782a698d56e0",
            ),
        ),
    ),
)
