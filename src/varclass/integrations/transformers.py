"""Hugging Face transformers: a sequence or image classifier whose softmax layer is replaced by a `VariationalHead`.

    model = convert(AutoModelForSequenceClassification.from_pretrained(...))
    Trainer(model, ...).train()
    model.save_pretrained("folder")
    model = VariationalModel.from_pretrained("folder")

`AutoModelForSequenceClassification` and `AutoModelForImageClassification` load it too, once this module is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from varclass.classifier import find_output_layer, from_model
from varclass.core.consistency import HeldOut, look_at
from varclass.core.head import VariationalHead
from varclass.core.objectives import Objective
from varclass.core.recall import options_of

try:
    import transformers
    from transformers import AutoConfig, PretrainedConfig, PreTrainedModel
    from transformers.utils.generic import ModelOutput
except ImportError as error:
    raise ImportError("varclass.integrations.transformers needs transformers: pip install 'varclass[transformers]'") from error

TASKS = ("ForSequenceClassification", "ForImageClassification")
SAME = 1e-3  # probabilities that may differ on an example before a conversion counts as a change


@dataclass
class VariationalOutput(ModelOutput):
    """What the model returns. `logits` is log p(z, y): softmax of it is p(y|x), and logsumexp is `log_evidence`."""

    loss: Tensor | None = None
    logits: Tensor | None = None  # (B, C)
    log_evidence: Tensor | None = None  # log p(z), (B,): low for inputs unlike the training data
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


class VariationalConfig(PretrainedConfig):
    """All that rebuilds a converted model: the original's config and class, the layer taken out, the head's options."""

    model_type = "varclass"
    sub_configs = {"encoder": AutoConfig}  # noqa: RUF012 (transformers' own way of saying it)
    keys_to_ignore_at_inference = ["hidden_states", "attentions"]  # noqa: RUF012

    def __init__(
        self,
        encoder: PretrainedConfig | dict[str, Any] | None = None,
        architecture: str = "",
        layer: str = "",
        in_features: int = 0,
        head: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self.encoder = AutoConfig.for_model(**encoder) if isinstance(encoder, dict) else encoder
        self.architecture, self.layer, self.in_features, self.head = architecture, layer, in_features, head or {}
        super().__init__(**kwargs)


class VariationalModel(PreTrainedModel):
    """A converted model: `convert` makes one, `from_pretrained` reads one back.

    `encoder` is the original without its output layer, `head` the `VariationalHead`. Arguments of `forward` that are not
    named here go to the encoder as well; the Trainer drops their columns unless `remove_unused_columns=False`.
    """

    config_class = VariationalConfig
    base_model_prefix = "encoder"
    accepts_loss_kwargs = False  # the loss is a mean over the batch: the Trainer divides it by the steps it accumulates
    supports_gradient_checkpointing = True
    _supports_sdpa = _supports_flash_attn = _supports_flex_attn = _supports_attention_backend = True
    _keep_in_fp32_modules_strict = ["head"]  # noqa: RUF012 (log densities need float32's digits whatever the encoder's precision)

    def __init__(
        self, config: VariationalConfig, encoder: PreTrainedModel | None = None, head: VariationalHead | None = None
    ) -> None:
        super().__init__(config)
        self.encoder = _build_encoder(config) if encoder is None else encoder
        self.head = _build_head(config) if head is None else head
        self.num_labels = self.head.num_classes
        self.main_input_name = self.encoder.main_input_name
        self.post_init()

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        pixel_values: Tensor | None = None,
        labels: Tensor | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> VariationalOutput | tuple[Tensor, ...]:
        """log p(z, y) as logits, and log p(z); given labels, (B,) or soft ones (B, C), the head's loss too."""
        named = {
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "token_type_ids": token_type_ids,
            "position_ids": position_ids,
            "inputs_embeds": inputs_embeds,
            "pixel_values": pixel_values,
        }
        given = {name: value for name, value in named.items() if value is not None}
        found = self.encoder(**given, **kwargs, return_dict=True)
        features = found.logits
        logits = self.head(features)
        output = VariationalOutput(
            loss=None if labels is None else self.head.loss(features, labels),
            logits=logits,
            log_evidence=torch.logsumexp(logits, dim=-1),
            hidden_states=getattr(found, "hidden_states", None),
            attentions=getattr(found, "attentions", None),
        )
        wants_dict = self.config.return_dict if return_dict is None else return_dict
        return output if wants_dict else output.to_tuple()

    @torch.no_grad()
    def settle(self, batches: Iterable[Mapping[str, Tensor]]) -> float:
        """`VariationalHead.settle` on held-out batches with labels, such as `trainer.get_eval_dataloader()`; in eval mode."""
        if self.training or not self.head.settles:
            got = "a model in training mode" if self.training else f"separation={self.head.separation!r}"
            raise ValueError(f"settle needs a model in eval mode whose head has separation='auto'; got {got}")
        seen = []
        for batch in batches:
            if not isinstance(batch, Mapping) or not isinstance(batch.get("labels"), Tensor):
                got = ", ".join(sorted(batch)) if isinstance(batch, Mapping) else type(batch).__name__
                raise ValueError(f"settle needs batches that are dictionaries of tensors, 'labels' among them; got {got}")
            given = {name: value.to(self.device) for name, value in batch.items() if isinstance(value, Tensor)}
            labels = given.pop("labels")
            seen.append(look_at(self.head, self.encoder(**given, return_dict=True).logits, labels))
        if not seen:
            raise ValueError("settle needs batches of held-out samples; got none")
        return self.head.settle_from(HeldOut.of(seen))

    def get_input_embeddings(self) -> nn.Module:
        """The encoder's."""
        return self.encoder.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        """The encoder's."""
        self.encoder.set_input_embeddings(value)

    def gradient_checkpointing_enable(self, *args: Any, **kwargs: Any) -> None:
        """The encoder's, which knows whether it can."""
        self.encoder.gradient_checkpointing_enable(*args, **kwargs)

    def _init_weights(self, module: nn.Module) -> None:
        """Nothing: encoder and head come with their own first weights."""


def convert(
    model: PreTrainedModel,
    layer: str | None = None,
    *,
    keep: bool = True,
    example: Mapping[str, Any] | None = None,
    **options: Any,
) -> VariationalModel:
    """Replace the softmax layer of a sequence or image classification model by a `VariationalHead`.

    The model given is left as it is. Its predictions are kept, whether its layer was trained or is fresh.

    Args:
        model: what `AutoModelForSequenceClassification` or `AutoModelForImageClassification` gives, single-label.
        layer: the output layer's dotted name, where it is not found by itself.
        keep: take the layer over. False starts from a new head with `VariationalHead`'s defaults, for a model whose
            layer is not trained yet.
        example: inputs, as the model takes them, on which to check that the predictions are kept.
        options: of `VariationalHead.from_linear`, or with keep=False of `VariationalHead`, such as `samples=len(rows)`.
    """
    name = _check_model(model, layer)
    if not keep and example is not None:
        raise ValueError("example checks that predictions are kept; with keep=False they are not")
    split = from_model(model, name, **(options if keep else {"objective": "ce"}))
    head = split.head if keep else VariationalHead(split.head.in_features, split.head.num_classes, **options)
    kept = options_of(head)
    if isinstance(kept["objective"], Objective):
        raise ValueError(f"objective must be a name, which config.json can hold; got {kept['objective']}")
    encoder = cast(PreTrainedModel, split.encoder)
    config = VariationalConfig(
        encoder=encoder.config,
        architecture=type(model).__name__,
        layer=name,
        in_features=head.in_features,
        head=kept,
        id2label=model.config.id2label,
        label2id=model.config.label2id,
        problem_type="single_label_classification",
        attn_implementation=model.config._attn_implementation,  # left out, it would be taken from the encoder too
    )
    for module in encoder.modules():  # else transformers would draw their weights anew
        setattr(module, "_is_hf_initialized", True)  # noqa: B010
    at_least_float32 = torch.promote_types(model.dtype, torch.float32)
    converted = VariationalModel(config, encoder, head.to(model.device, at_least_float32)).train(model.training)
    if example is not None:
        _check_same_predictions(model, converted, example)
    return converted


def _check_model(model: PreTrainedModel, layer: str | None) -> str:
    """The name of the output layer, of a model that can be converted and, from its config, built again."""
    kind = type(model).__name__
    if (
        not isinstance(model, PreTrainedModel)
        or not kind.endswith(TASKS)
        or getattr(transformers, kind, None) is not type(model)
    ):
        raise TypeError(f"convert takes a sequence or image classification model of transformers; got {kind}")
    classes = len(model.config.id2label or ())
    if model.config.problem_type in ("regression", "multi_label_classification") or classes < 2:
        got = model.config.problem_type or f"num_labels={classes}"
        raise ValueError(f"convert needs two or more exclusive classes (single_label_classification); got {got}")
    name = find_output_layer(model) if layer is None else layer
    outputs = getattr(dict(model.named_modules()).get(name), "out_features", None)
    if outputs != classes:
        raise ValueError(f"layer {name!r} of {kind} must have {classes} outputs, one a class; got {outputs}")
    return name


def _build_encoder(config: VariationalConfig) -> PreTrainedModel:
    kind = getattr(transformers, config.architecture, None) if config.architecture.endswith(TASKS) else None
    if kind is None:
        raise ValueError(f"architecture must name a classification model of transformers; got {config.architecture!r}")
    encoder: PreTrainedModel = kind._from_config(config.encoder)
    encoder.set_submodule(config.layer, nn.Identity())
    return encoder


def _build_head(config: VariationalConfig) -> VariationalHead:
    dtype = torch.promote_types(torch.get_default_dtype(), torch.float32)
    with torch.device("cpu"):  # transformers builds on "meta", where options cannot be checked
        return VariationalHead(config.in_features, len(config.id2label or ()), **config.head).to(dtype)


@torch.no_grad()
def _check_same_predictions(model: PreTrainedModel, converted: VariationalModel, example: Mapping[str, Any]) -> None:
    training = model.training
    try:
        before, after = model.eval()(**example).logits, converted.eval()(**example).logits
    finally:
        model.train(training)
        converted.train(training)
    error = float((torch.softmax(before.float(), -1) - torch.softmax(after.float(), -1)).abs().max())
    if not error < SAME:
        raise ValueError(f"the model does something after its output layer: predictions differ by {error:.2g}; name the layer")


AutoConfig.register("varclass", VariationalConfig, exist_ok=True)
transformers.AutoModelForSequenceClassification.register(VariationalConfig, VariationalModel, exist_ok=True)
transformers.AutoModelForImageClassification.register(VariationalConfig, VariationalModel, exist_ok=True)
