"""VariationalHead: the output layer. Features in, log p(z, y) out; softmax of that is p(y|z), logsumexp is log p(z)."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from varclass.core import calibration, consistency, linear, presets, vmf  # noqa: F401 (importing vmf registers the family)
from varclass.core.axes import AxesPrior
from varclass.core.groups import CHILDREN, make_groups
from varclass.core.label_prior import LabelPrior
from varclass.core.many_classes import choose_chunk
from varclass.core.objectives import OBJECTIVES, Drawn, Objective, Terms
from varclass.core.options import check_class_weight, check_count
from varclass.core.posterior import POSTERIORS, DeltaPosterior
from varclass.core.priors import ALL, PRIORS, ClassPrior, GaussianPrior
from varclass.core.ratio import RATIOS, RatioEstimator
from varclass.core.targets import Target, check_labels, check_sample_weight, read_target


class VariationalHead(nn.Module):
    """A drop-in for `nn.Linear` + softmax that states how its inputs are distributed given the class.

    log p(z, y) = log p_theta(z|y) + log p_pi(y);  p(y|z) = softmax_y;  log p(z) = logsumexp_y        [eq:sce, eq:LVC_2]

    With nothing else named it is the recommended head: a softmax layer as it is, whose C outputs, divided by a, are the
    latents, under unit Gaussians at a e_y; training pulls each to its own class's, held-out data set their width (`settle`).
    Every option left at None takes the value in `varclass.core.presets`, where each default and its reason stand: the
    recommended head's, or the paper's once an objective, a latent dimension or a geometry of the paper's is named.

    Args:
        in_features: size of the encoder's output.
        num_classes: C, at least 2.
        latent_dim: D of z; a linear map in_features -> D then comes first and belongs to the encoder (phi). None: C if means
            lie on axes, otherwise z is the features, as in the paper.
        objective: "pull" (recommended), "ce", "gm", "vc", "bottleneck", "authors", or an `Objective`.
        beta: weight of the KL in eq:LVC_2, of log p(z|y) in GM and "pull": a number, or one such as "1/D", the default but
            for "pull", which has "auto": min(1/2, 10 / D^2) min(1, (100 / n)^2) with n training samples a class. The paper's
            value is 1.
        samples: how many samples it will be trained on, if known: pass it, beta="auto" is to give way to them. None: 1000 a
            class. Another beta takes no notice of it.
        prior: "gaussian" or "vmf" (latents are then normalised).
        covariance: "diagonal" (the paper's), "isotropic", "shared", "unit" (softmax layers'); vmf has no diagonal.
        means: "axes" (recommended: one axis for each class), "simplex" (fixed and equidistant too, in any dimension), or
            "learned" (the paper's).
        separation: |mu_y| from the means' center in units of sigma; "auto" (recommended): what held-out data justify, see
            `settle`. Learned means start there, at 4 by default (CE: 0.58, as nn.Linear), and have no "auto".
        ratio: "linear" (the paper's), "quadratic", "mlp", "shared". Built only if the objective uses one.
        label_prior: "learned" (the paper's), "uniform", or a tensor of C probabilities.
        posterior: "delta" (the paper's) or "gaussian"; predictions then average over `draws`.
        preset: "recommended", "paper" or "authors": its values for what is not given here.
        draws: latents per prediction if the posterior is Gaussian; 16, in antithetic pairs.
        posterior_moves_pi: let log p(y|z) move pi too, eq:LVC_2 differentiated as it stands. Algorithm 1 does not.
        class_weight: C weights; the data distribution is taken in proportion to w_y p(x, y), in every term.
        ignore_index: hard labels of this value do not count.
        class_chunk: classes per chunk in training, num_classes for all at once; None chooses by size (see `many_classes`).
            Without a part on axes, where the latents are as large as the log joint.

    >>> head = VariationalHead(in_features=8, num_classes=3)
    >>> features, y = torch.randn(5, 8), torch.tensor([0, 1, 2, 0, 1])
    >>> head.loss(features, y).backward()
    >>> head(features).shape
    torch.Size([5, 3])
    """

    ratio: RatioEstimator
    class_weight: Tensor | None

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        latent_dim: int | None = None,
        objective: str | Objective | None = None,
        beta: float | str | None = None,
        samples: int | None = None,
        prior: str | None = None,
        covariance: str | None = None,
        means: str | None = None,
        separation: float | str | None = None,
        ratio: str | None = None,
        label_prior: str | Tensor | None = None,
        posterior: str | None = None,
        preset: str | None = None,
        draws: int = 16,
        posterior_moves_pi: bool = False,
        class_weight: Tensor | None = None,
        ignore_index: int = -100,
        class_chunk: int | None = None,
    ) -> None:
        super().__init__()
        default = presets.defaults_for(
            preset,
            objective=next((name for name, kind in OBJECTIVES.items() if type(objective) is kind), objective),
            prior=prior,
            covariance=covariance,
            means=means,
            posterior=posterior,
            latent_dim=latent_dim,
            ratio=ratio,
        )

        def chosen(option: str, given: Any) -> Any:
            return default[option] if given is None else given

        self.in_features = check_count("in_features", in_features, 1)
        self.num_classes = check_count("num_classes", num_classes, 2)
        where = chosen("means", means)
        if where == "axes" and latent_dim is None:
            latent_dim = num_classes
        self.latent_dim = in_features if latent_dim is None else check_count("latent_dim", latent_dim, 1)
        self.samples = None if samples is None else check_count("samples", samples, 1)
        self.draws = check_count("draws", draws, 1)
        self.class_chunk = None if class_chunk is None else check_count("class_chunk", class_chunk, 1)
        self.posterior_moves_pi, self.ignore_index, self.preset = posterior_moves_pi, ignore_index, preset
        self.lr_multipliers, self.undecayed = default["lr_multipliers"], default["undecayed"]

        self.objective = self._make_objective(chosen("objective", objective), beta, default["beta"])
        self.projection = nn.Identity() if latent_dim is None else nn.Linear(in_features, latent_dim)
        family = self._pick_family(chosen("prior", prior), where)
        shape = chosen("covariance", covariance)
        self.class_prior: ClassPrior = family(
            self.num_classes,
            self.latent_dim,
            family.covariances[0] if shape is None else shape,
            where,
            self._first_separation(chosen("separation", separation), family, where),
        )
        self.label_prior = self._make_label_prior(chosen("label_prior", label_prior))
        self.posterior = POSTERIORS.pick(chosen("posterior", posterior))(in_features, self.latent_dim)
        self._check_spread()
        estimator = RATIOS.pick(chosen("ratio", ratio))
        if self.objective.uses_ratio:  # otherwise its parameters would never see a gradient
            self.ratio = estimator(self.num_classes, self.latent_dim)
        self.register_buffer("class_weight", check_class_weight(class_weight, self.num_classes))

    # ---------------------------------------------------------------------------------------------- features to numbers

    def forward(self, features: Tensor) -> Tensor:
        """log p(z, y), (..., in_features) -> (..., C).

        With a Gaussian posterior: log mean p(y|z) + log mean p(z) over the draws, so that softmax and logsumexp of the
        output keep their meaning.
        """
        flat = self._flatten(features)
        with torch.autocast(flat.device.type, enabled=False):
            latents = self.posterior.draws(flat, self.projection(flat), self.draws)
            found = [self.log_joint(self.class_prior.support(z)) for z in latents]
            out = found[0] if len(found) == 1 else average_prediction(found)
        return out.reshape(*features.shape[:-1], self.num_classes)

    def log_posterior(self, features: Tensor) -> Tensor:
        """log p(y|x), (..., in_features) -> (..., C), by Bayes' rule: what is common to the classes is never added."""
        if not isinstance(self.posterior, DeltaPosterior):
            return torch.log_softmax(self(features), dim=-1)
        flat = self._flatten(features)
        with torch.autocast(flat.device.type, enabled=False):
            relative, _ = self.class_prior.log_prob_apart(self.class_prior.support(self.projection(flat)), self.log_label())
            return torch.log_softmax(relative, dim=-1).reshape(*features.shape[:-1], self.num_classes)

    def log_evidence(self, features: Tensor) -> Tensor:
        """log p(z), (..., in_features) -> (...): how expected these latents are; low for inputs unlike the training data."""
        return torch.logsumexp(self(features), dim=-1)

    def energy(self, features: Tensor) -> Tensor:
        """-logsumexp_y of the softmax layer that a head is, (..., in_features) -> (...): high for unlikely inputs.

        On axes it is -log p(z) without |h|^2 / (2 a^2), h being the layer's outputs, and before anything was settled: what
        p(y|z) was trained with and nothing else. With many classes latents do not follow their Gaussians, and this tells
        outliers apart better (for softmax layers: Liu et al. 2020). Means that are learned need a covariance that all classes
        share, as under CE; of the outputs they amount to, their average over the classes is taken away.
        """
        if not linear.has_linear_log_odds(self):
            raise ValueError("energy is a softmax layer's: it needs covariance='unit' or 'shared'; use -log_evidence")
        z = self.latent(features)
        return -torch.logsumexp(linear.outputs_of(self, z), dim=-1)

    def latent(self, features: Tensor) -> Tensor:
        """z, (..., in_features) -> (..., D): the mean of q(z|x), on the class prior's support."""
        flat = self._flatten(features)
        with torch.autocast(flat.device.type, enabled=False):
            z = self.class_prior.support(self.projection(flat))
        return z.reshape(*features.shape[:-1], self.latent_dim)

    def loss(self, features: Tensor, y: Tensor, drawn: Drawn | None = None, *, sample_weight: Tensor | None = None) -> Tensor:
        """The scalar whose one backward pass moves phi, theta, pi and psi, each as the objective says.

        Args:
            features: (..., in_features).
            y: labels (...), or soft labels (..., C), of which every term is the expectation.
            drawn: what `draw(y)` returned, for a caller that must know the prior samples; drawn here otherwise.
            sample_weight: weights (...); every term becomes the weighted mean, sum(w t) / sum(w).
        """
        return self.terms(features, y, drawn, sample_weight=sample_weight).total

    def terms(self, features: Tensor, y: Tensor, drawn: Drawn | None = None, *, sample_weight: Tensor | None = None) -> Terms:
        """Every term of the objective, for logging; `.total` is the loss."""
        flat = self._flatten(features)
        target = self.read_target(features, y)
        if sample_weight is not None:
            target = target.weighted(check_sample_weight(sample_weight, features.shape[:-1], self.class_prior.log_scale.dtype))
        with torch.autocast(flat.device.type, enabled=False):
            mean = self.projection(flat)
            z = self.class_prior.support(self.posterior.sample(flat, mean))
            around = None
            if self.objective.uses_spread:
                around = self.class_prior.support(mean), self.class_prior.support(self.posterior.scale(flat))
            return self.objective.terms(self, z, target, drawn, around)

    def read_target(self, features: Tensor, y: Tensor) -> Target:
        """Labels, checked against the features, as the weighted averages that every term takes."""
        dtype = self.class_prior.log_scale.dtype
        return read_target(y, features, self.num_classes, self.class_weight, self.ignore_index, dtype)

    # --------------------------------------------------------------------------------------------------- latents

    def log_label(self) -> Tensor:
        """log p(y), (C,), as Bayes' rule uses it. Gradient: pi only if `posterior_moves_pi`."""
        log_probs = self.label_prior.log_probs()
        return log_probs if self.posterior_moves_pi else log_probs.detach()

    def log_joint(self, z: Tensor, classes: slice = ALL) -> Tensor:
        """log p(z, y) of latents, (B, D) -> (B, C). Gradient: z, theta; pi only if `posterior_moves_pi`."""
        if classes != ALL:
            return self.class_prior.log_prob(z, classes) + self.log_label()[classes]
        return self.class_prior.log_joint(z, self.log_label())

    def log_joint_of(self, z: Tensor, y: Tensor) -> Tensor:
        """log p(z_i, y_i), (B, D), (B,) -> (B,). Gradient: as `log_joint`."""
        return self.class_prior.log_prob_of(z, y) + self.log_label()[y]

    def draw(self, y: Tensor) -> Drawn | None:
        """The prior samples a loss on these labels would draw, (B,) and (B, D); None if the objective has no use for any."""
        if not self.objective.uses_ratio:
            return None
        batch = y.shape[:-1] if y.is_floating_point() else y.shape
        return self.draw_from(self.read_target(self.class_prior.log_scale.new_empty(*batch, 0), y))

    def draw_from(self, target: Target) -> Drawn:
        """A label per sample and z ~ p(z|label), as one loss takes them."""
        labels = target.draw()
        return labels, self.class_prior.sample(labels)

    def sample(self, y: Tensor) -> Tensor:
        """z ~ p(z|y), labels (...) -> latents (..., D)."""
        labels = check_labels(y, self.num_classes)
        return self.class_prior.sample(labels).reshape(*y.shape, self.latent_dim)

    def standardize(self, z: Tensor, y: Tensor) -> Tensor:
        """Latents (..., D) in the frame of their class: standard normal under a Gaussian prior. Gradient: z."""
        if z.shape != (*y.shape, self.latent_dim):
            raise ValueError(f"z must have shape {(*y.shape, self.latent_dim)} to go with y; got {tuple(z.shape)}")
        labels = check_labels(y, self.num_classes)
        return self.class_prior.standardize(z.reshape(-1, self.latent_dim), labels).reshape(z.shape)

    def chunk_for(self, batch: int) -> int | None:
        """Classes per chunk that a training step on `batch` samples takes, or None if all at once."""
        if isinstance(self.class_prior, AxesPrior):  # the latents are as large as the log joint
            return None
        chunk = self.class_chunk or choose_chunk(batch, self.num_classes)
        return None if chunk is None or chunk >= self.num_classes else chunk

    # ------------------------------------------------------------------------------------------------- training

    def parameter_groups(
        self,
        lr: float | None = None,
        weight_decay: float = 0.0,
        *,
        lr_multipliers: Mapping[str, float] | None = None,
        weight_decays: Mapping[str, float] | None = None,
        encoder: nn.Module | None = None,
    ) -> list[dict[str, Any]]:
        """Groups "phi", "theta", "pi", "psi" for any torch optimizer, those that have parameters.

        Args:
            lr: the encoder's learning rate. Without it the groups carry "lr_multiplier" only, for a schedule of your own.
            weight_decay: the encoder's; theta and pi have none unless the preset or `weight_decays` says so.
            lr_multipliers: factor on `lr` by group.
            weight_decays: weight decay by group.
            encoder: a module whose parameters join "phi".

        >>> [g["name"] for g in VariationalHead(4, 2).parameter_groups()]
        ['phi', 'pi']
        """
        decays = {**dict.fromkeys(CHILDREN, weight_decay), **dict.fromkeys(self.undecayed, 0.0), **(weight_decays or {})}
        return make_groups(self, encoder, lr, {**self.lr_multipliers, **(lr_multipliers or {})}, decays)

    def widen(self) -> None:
        """With separation="auto": means at the distance to train at where held-out data will settle sigma. Once is enough."""
        if self.settles and isinstance(self.class_prior, GaussianPrior):
            self.class_prior.scale_means(consistency.far(self.num_classes) / self.class_prior.distance)

    def settle(self, features: Tensor, y: Tensor) -> float:
        """With separation="auto": the width of the priors as held-out data justify, so that predictions are neither too sure
        nor unsure. On axes it is a covariance that all classes share, if there are samples enough (100, and 10 a class, up
        to 128 classes) and they are predicted better for it; otherwise one sigma, which changes no decision.

        Call it in eval mode, with features of samples that are not trained on, after each epoch or at the end (from the
        first call on, training takes place with means farther apart). Fewer than 20 samples change nothing. Returns
        |mu_y| / sigma as predictions now have it.
        """
        if not self.settles:
            raise ValueError(f"settle needs separation='auto'; got separation={self.separation!r}")
        if self.training:
            raise ValueError("settle looks at predictions as they will be made: call eval() first; got a head in training mode")
        return self.settle_from(consistency.look_at(self, features, y))

    def settle_from(self, held: consistency.HeldOut) -> float:
        """The same from what `look_at` said, of several batches joined by `HeldOut.of`."""
        return consistency.settle(self, held)

    @property
    def separation(self) -> float | None:
        """|mu_y| in units of sigma: what was given, or what "auto" makes of it now."""
        prior = self.class_prior
        return prior.radius if self.settles and isinstance(prior, GaussianPrior) else prior.separation

    def settle_by(self, temperature: float) -> float:
        """Sigma alone, by a held-out temperature that is known, of all processes together."""
        assert isinstance(self.class_prior, GaussianPrior)
        self.class_prior.settle(temperature, self.log_label().detach())
        return self.class_prior.radius

    # ------------------------------------------------------------------------------- after training: calibrate, shift

    def calibrate(self, features: Tensor, y: Tensor) -> float:
        """Fit one factor on every class's sigma to held-out log p(y|z), and keep it: temperature scaling, generatively.

        sigma_y <- s sigma_y leaves p(y) alone and keeps the densities normalised, so log p(z) stays meaningful. Calling
        it again fits anew. Returns s: above 1 the head was overconfident.
        """
        return calibration.fit_scale_factor(self, features, y)

    def with_label_prior(self, probs: Tensor) -> VariationalHead:
        """The same head, sharing its weights, with p(y) replaced: for test data whose class frequencies are others.

        `estimate_label_prior` finds them from unlabelled predictions.
        """
        shifted = copy.copy(self)
        shifted._modules = dict(self._modules)
        trained = self.label_prior.logits
        shifted.label_prior = LabelPrior(self.num_classes, torch.as_tensor(probs), trained.dtype).to(trained.device)
        return shifted

    # ---------------------------------------------------------------------------------------- to and from nn.Linear

    @classmethod
    def from_linear(cls, layer: nn.Linear, *, label_prior: Tensor | str = "uniform", **options: Any) -> VariationalHead:
        """A head with the same posterior as a trained `nn.Linear` + softmax (or, with one output, + sigmoid).

        The recommended head holds the layer as it is. With means that are learned, Sigma = I and mu_y = w_y + v, where the
        common shift v is chosen so that p(y) is the one given; where no shift can do that (C > D + 1 in general), what
        remains is absorbed in p(y), with a warning.

        Args:
            layer: the trained layer; its bias may be None.
            label_prior: p(y) to keep, "uniform" by default; "learned" starts there and trains on.
            options: any other of `VariationalHead`; where means are learned, the covariance is "shared" unless given.
        """
        return linear.make_head(cls, layer, label_prior, options)

    def as_linear(self) -> nn.Linear:
        """An `nn.Linear` with the same posterior, if the log-odds of the classes are linear in the features.

        That holds for a shared or unit covariance and a delta posterior; a projection is folded in. log p(z) cannot be
        recovered from it.
        """
        training = self.training
        try:
            return linear.fold(self.eval())
        finally:
            self.train(training)

    # ------------------------------------------------------------------------------------------------- the boundary

    @property
    def per_class(self) -> float:
        """Training samples a class, as beta="auto" takes them."""
        return presets.UNKNOWN if self.samples is None else self.samples / self.num_classes

    @property
    def named_beta(self) -> float | str | None:
        """beta as it was written, "1/D" or "auto", if it still is the objective's; the objective's number otherwise."""
        now = getattr(self.objective, "beta", None)
        named = self._beta is not None and now == presets.beta_at(self._beta, self.latent_dim, self.per_class)
        return self._beta if named else now

    def extra_repr(self) -> str:
        p = self.class_prior
        label = "learned" if self.label_prior.learned else "fixed"
        shown = f"{self.in_features}, {self.num_classes}, latent_dim={self.latent_dim}, objective={self.objective}"
        if self.named_beta == presets.AUTO:
            known = "samples unknown" if self.samples is None else f"{round(self.per_class, 1):g} samples a class"
            shown += f" (auto: {known})"
        shown += f", covariance={p.covariance}"
        if isinstance(p, AxesPrior) and p.root.numel():
            shown += " (settled: one that all classes share)"
        separation = f"auto, now {self.separation:.3g}" if self.settles else p.separation
        return f"{shown}, means={p.means}, separation={separation}, label_prior={label}"

    def _flatten(self, features: Tensor) -> Tensor:
        """(..., in_features) -> (B, in_features) in the head's own precision, which never drops below float32."""
        dtype = self.class_prior.log_scale.dtype
        if not isinstance(features, Tensor) or not features.is_floating_point():
            got = getattr(features, "dtype", type(features).__name__)
            raise TypeError(f"features must be a floating-point tensor; got {got}")
        if features.dim() == 0 or features.shape[-1] != self.in_features:
            raise ValueError(f"features must have shape (..., {self.in_features}); got {tuple(features.shape)}")
        if dtype not in (torch.float32, torch.float64):
            raise TypeError(f"the head computes in float32 or float64, but its parameters are {dtype}: call head.float()")
        if features.dtype == torch.float64 and dtype == torch.float32:
            raise TypeError("features are float64 but the head is float32: call head.double() or features.float()")
        return features.reshape(-1, self.in_features).to(dtype)

    @staticmethod
    def _pick_family(prior: str, means: str) -> type[ClassPrior]:
        family: type[ClassPrior] = PRIORS.pick(prior)
        if means != "axes":
            return family
        if family is not GaussianPrior:
            raise ValueError(f"means='axes' needs prior='gaussian'; got prior={prior!r}")
        return AxesPrior

    def _first_separation(self, given: float | str | None, family: type[ClassPrior], means: str) -> float | None:
        """The separation that means start at; whether it moves is `settles`."""
        self.settles = given == consistency.AUTO
        if self.settles and (not issubclass(family, GaussianPrior) or means == "learned"):
            raise ValueError(f"separation='auto' needs prior='gaussian' and means='axes' or 'simplex'; got means={means!r}")
        if isinstance(given, str) and not self.settles:
            raise ValueError(f"separation must be a number > 0 or 'auto'; got {given!r}")
        return consistency.near(self.num_classes) if self.settles else given  # type: ignore[return-value]

    def _check_spread(self) -> None:
        """Its KL is infinite for a point, and closed-form between Gaussians alone."""
        if self.objective.uses_spread and not (self.posterior.stochastic and isinstance(self.class_prior, GaussianPrior)):
            kinds = f"{type(self.posterior).__name__} and {type(self.class_prior).__name__}"
            raise ValueError(f"{self.objective} needs posterior='gaussian' and prior='gaussian'; got {kinds}")

    def _make_label_prior(self, given: str | Tensor | None) -> LabelPrior:
        if given is None:
            given = "learned" if self.objective.uses_label_prior else "uniform"
        prior = LabelPrior(self.num_classes, given)
        if prior.learned and not self.objective.uses_label_prior:
            raise ValueError(f"label_prior='learned' would never be trained: the objective {self.objective} has no label term")
        return prior

    def _make_objective(self, objective: str | Objective, beta: float | str | None, default: float | str) -> Objective:
        self._beta: str | None = None
        if isinstance(objective, Objective):
            if beta is not None:
                raise ValueError(f"beta belongs to the objective; got beta={beta!r} beside {objective}")
            return objective
        kind = OBJECTIVES.pick(objective)
        chosen = default if beta is None else beta
        presets.check_beta("beta", chosen, objective)
        self._beta = chosen if isinstance(chosen, str) else None
        return kind.with_beta(presets.beta_at(chosen, self.latent_dim, self.per_class))


def average_prediction(log_joints: list[Tensor]) -> Tensor:
    """log mean p(y|z) + log mean p(z) over draws of z."""
    log_joint = torch.stack(log_joints)
    log_posterior, log_evidence = torch.log_softmax(log_joint, dim=-1), torch.logsumexp(log_joint, dim=-1, keepdim=True)
    return torch.logsumexp(log_posterior, dim=0) + torch.logsumexp(log_evidence, dim=0) - 2 * math.log(len(log_joints))
