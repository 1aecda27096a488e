"""What the paper leaves open, chosen on validation data: `varclass reproduce settings` measures the grid of `arms.GRID`.

For each data set (and size, where samples are few) the point with the lowest validation NLL; results/paper/settings.json has
every point, and a test holds this table to it. CE has nothing open: it is softmax, and starts as that does. ResNet-50, with its
2048 features, has one choice for all of its data sets, VC's of a single point so far; a data set that is not listed takes the
head's own defaults.
"""

from __future__ import annotations

SOURCES = {  # by data, and size where samples are few, or encoder: the experiment of `settings` that decides
    "mnist/500": "mnist/lenet/1000",
    "ag_news/50": "ag_news/text/500",
    "cifar10/1000": "cifar10/resnet-18/2000",
    "cifar10": "cifar10/resnet-18/10000",
    "cifar100": "cifar100/resnet-18/10000",
    "cifar10/sprint-128": "cifar10/sprint-128/25000",
    "cifar100/sprint-128": "cifar100/sprint-128/25000",
    "cifar10/resnet-50": "cifar100/resnet-50/25000",
    "cifar100/resnet-50": "cifar100/resnet-50/25000",
    "tiny_imagenet/resnet-50": "cifar100/resnet-50/25000",
}

SLOW = {"vmf": "vmf:thetax0.01", "authors": "authors:thetax0.01"}
RESNET_50 = {"gm": "gm:0.001:4:thetax0.01", "vc": "vc:0.001:1:thetax0.1", "vmf": "vmf:thetax0.01"}
CHOSEN: dict[str, dict[str, str]] = {
    "mnist/500": {"gm": "gm:0.001:1", "vc": "vc:0.01:1"},
    "ag_news/50": {"gm": "gm:0.001:1", "vc": "vc:0.01:1"},
    "cifar10/1000": {"gm": "gm:0.1:1", "vc": "vc:0.1:1"},
    "cifar10": {"gm": "gm:0.001:4:thetax0.1", "vc": "vc:0.001:4:thetax0.1"},
    "cifar100": {"gm": "gm:0.001:1", "vc": "vc:0.001:1"},
    "cifar10/sprint-128": {"gm": "gm:0.001:4:thetax0.01", "vc": "vc:0.01:4:thetax0.01"} | SLOW,
    "cifar100/sprint-128": {"gm": "gm:0.001:1:thetax0.1", "vc": "vc:0.001:1:thetax0.1"} | SLOW,
    "cifar10/resnet-50": RESNET_50,
    "cifar100/resnet-50": RESNET_50,
    "tiny_imagenet/resnet-50": RESNET_50,
}
