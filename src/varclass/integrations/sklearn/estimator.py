"""VariationalClassifier: variational classification of arrays, as a scikit-learn estimator."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from varclass.classifier import Classifier
from varclass.core.consistency import AUTO, FEWEST, HeldOut, look_at
from varclass.core.head import VariationalHead
from varclass.core.objectives import Objective
from varclass.core.options import check_choice, check_count, check_positive, check_probabilities
from varclass.encoders.contract import check_dropout
from varclass.integrations.sklearn.arguments import counted, layer_sizes, share, split_folds
from varclass.integrations.sklearn.fitting import Arrays, Settings, make_optimizer, seeded, train, train_epoch
from varclass.integrations.sklearn.model import build_model, fit_standardize, set_label_prior
from varclass.training.schedule import SCHEDULES

FLOATS = (np.float64, np.float32)
CHUNK = 4096  # rows of a prediction in one piece
SHOWN = ("loss", "validation_nll", "validation_accuracy")  # of the history, while it trains


class VariationalClassifier(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A neural classifier with class priors p(z|y) on its latents, for arrays: scikit-learn's interface.

    Trains in X's own precision: float32 is faster, float64 predicts in float64. Names that scikit-learn's MLPClassifier
    has mean the same here.

    Args:
        encoder: None for a multilayer perceptron with ReLU; an `nn.Module` from (B, n_features) to (B, F), of which a copy
            is trained; or a function from n_features to such a module.
        hidden_layer_sizes: of the perceptron.
        dropout: of the perceptron's hidden layers.
        latent_dim: D of z. None: n_classes for the recommended head; for the paper's, n_classes - 1 and at least 16, or with
            an encoder of yours, its features as they are.
        objective, beta, preset: as in `VariationalHead`. beta="auto" gives way to the rows that the model is trained on; those
            of `partial_fit` are not known beforehand, unless head_options={"samples": 5000} says so.
        head_options: anything else of `VariationalHead`, as a dictionary: {"covariance": "shared", "ratio": "mlp"}.
        class_prior: p(y) for prediction, in the order of `classes_`, where it is not that of the training data.
        standardize: scale every feature to mean 0 and variance 1, inside the model.
        max_iter: epochs; at most, with early stopping.
        batch_size: samples in a step, about.
        learning_rate_init: peak rate of AdamW; small sets have few steps, so it is not small.
        learning_rate: its schedule: "cosine", "one-cycle", "step" or "constant". `partial_fit` is constant.
        alpha: weight decay; class priors have none.
        early_stopping: keep aside `validation_fraction` of the data, stop when the NLL there has not improved by `tol` for
            `n_iter_no_change` epochs, and return to the best weights.
        cross_fit: without early stopping, how sure to be is settled by so many folds: each is predicted by a model trained on
            the others, and all of the data train the model that is kept. 0 for none; a head that does not settle has none, nor
            have fewer than 20 rows.
        random_state: seed of all that is random; the global generators are left alone.
        device: where to train and predict, such as "cuda". Pickle a model for another machine after `model_.cpu()`.
        verbose: 1 prints about ten lines of progress, 2 a line for each epoch.

    Attributes:
        classes_, n_features_in_, feature_names_in_: as in scikit-learn.
        model_: the trained `varclass.Classifier`, in eval mode.
        class_prior_: p(y) that predictions use.
        history_: a dictionary for each epoch: the loss, its terms, and validation NLL and accuracy with early stopping.
        n_iter_: epochs trained.

    >>> X, y = [[0.0], [0.1], [3.0], [3.1]], ["low", "low", "high", "high"]
    >>> VariationalClassifier(max_iter=20, random_state=0).fit(X, y).predict([[0.05], [2.9]]).tolist()
    ['low', 'high']
    """

    history_: list[dict[str, Any]]
    _optimizer: torch.optim.Optimizer | None

    def __init__(
        self,
        encoder: nn.Module | Callable[[int], nn.Module] | None = None,
        *,
        hidden_layer_sizes: int | Sequence[int] = (100,),
        dropout: float = 0.5,
        latent_dim: int | None = None,
        objective: str | Objective | None = None,
        beta: float | str | None = None,
        preset: str | None = None,
        head_options: Mapping[str, Any] | None = None,
        class_prior: Sequence[float] | None = None,
        standardize: bool = True,
        max_iter: int = 100,
        batch_size: int = 64,
        learning_rate_init: float = 1e-2,
        learning_rate: str = "cosine",
        alpha: float = 1e-4,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-4,
        cross_fit: int = 5,
        random_state: int | np.random.RandomState | None = None,
        device: str | torch.device = "cpu",
        verbose: int = 0,
    ) -> None:
        self.encoder = encoder
        self.hidden_layer_sizes = hidden_layer_sizes
        self.dropout = dropout
        self.latent_dim = latent_dim
        self.objective = objective
        self.beta = beta
        self.preset = preset
        self.head_options = head_options
        self.class_prior = class_prior
        self.standardize = standardize
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate_init = learning_rate_init
        self.learning_rate = learning_rate
        self.alpha = alpha
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.cross_fit = cross_fit
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # -------------------------------------------------------------------------------------------------------- training

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on X (N, n_features) and labels y (N,) of any type; each sample's loss counts `sample_weight` (N,) times."""
        settings = self._settings()
        x, labels = self._read(X, y, reset=True)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        self._begin()
        parts, held_out = counted(x, codes, sample_weight), None
        if self.early_stopping:
            size = share("validation_fraction", self.validation_fraction)
            split = train_test_split(*parts, test_size=size, stratify=parts[1], random_state=self._random)
            parts, held_out = tuple(split[::2]), self._arrays(*split[1::2])
        folds = self._folds(parts[1])
        with self._seeded():
            held = self._cross_fit(parts, folds, settings)
            self._build(*parts, samples=len(parts[1]))
            if held is not None:
                self.model_.head.widen()
            if held_out is not None and len(held_out.y) < FEWEST and self.model_.head.settles:
                said = f"early stopping holds out {len(held_out.y)} samples and {FEWEST} are needed; cross_fit=5 has them all"
                self._warn_unsettled(self.model_, said)
            self.history_ = train(self.model_, self._arrays(*parts), held_out, settings, self._report)
            if held is not None:
                self.model_.eval()
                self.model_.head.settle_from(held)
        return self._finish()

    def _folds(self, codes: np.ndarray) -> int:
        """How many to settle by: as many as the largest class has samples at most, and none of too few samples."""
        if check_count("cross_fit", self.cross_fit, 0) == 1:
            raise ValueError("cross_fit must be a number of folds from 2 on, or 0 for none; got 1")
        totals = np.bincount(codes)
        enough = int(totals[totals > 1].sum()) >= FEWEST and not self.early_stopping
        return min(self.cross_fit, int(totals.max())) if enough else 0

    def _cross_fit(self, parts: tuple[Any, ...], folds: int, settings: Settings) -> HeldOut | None:
        """What `settle_from` takes, each sample's by a model that has not seen it; None if the head does not settle."""
        if not folds or not self._settles():
            return None
        seen = []
        for rows, rest in split_folds(parts[1], folds):
            some, others = (tuple(part[chosen] for part in parts) for chosen in (rows, rest))
            self._build(*some, samples=len(parts[1]))  # all of them: the same pull as on the model that is kept
            self.model_.head.widen()
            train(self.model_, self._arrays(*some), None, settings, lambda row: None)
            held_out = self._arrays(*others)
            self.model_.eval()
            with torch.no_grad():
                features = torch.cat([self.model_.encoder(x) for x in held_out.x.split(CHUNK)])
            seen.append(look_at(self.model_.head, features, held_out.y))
        return HeldOut.of(seen)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """One epoch on X, y, going on from where training is.

        The first call needs `classes`, all labels that will ever come, and sets the standardization by its X; p(y) is
        that of all samples so far.
        """
        settings = replace(self._settings(), schedule="constant")
        if self.early_stopping:
            raise ValueError("partial_fit has no early stopping: set early_stopping=False, or use fit")
        first = not hasattr(self, "model_")
        x, labels = self._read(X, y, reset=first)
        if first:
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit; got None")
            self.classes_ = np.unique(column_or_1d(classes))
            self._begin()
        elif classes is not None and not np.array_equal(self.classes_, np.unique(column_or_1d(classes))):
            raise ValueError(f"classes must be those of the first call, {self.classes_.tolist()}; got {classes!r}")
        parts = counted(x, self._codes(labels), sample_weight)
        with self._seeded():
            if first:
                self._build(*parts)
            else:
                self._count(*parts[1:])
            if self._optimizer is None:
                self._optimizer = make_optimizer(self.model_, settings)
            row = train_epoch(self.model_, self._arrays(*parts), self._optimizer, settings, 0)
        self.history_ = [*self.history_, {"epoch": len(self.history_) + 1, **row}]
        return self._finish()

    def _settings(self) -> Settings:
        check_choice("learning_rate", self.learning_rate, SCHEDULES)
        return Settings(
            epochs=check_count("max_iter", self.max_iter, 1),
            batch_size=check_count("batch_size", self.batch_size, 1),
            lr=check_positive("learning_rate_init", self.learning_rate_init),
            weight_decay=check_positive("alpha", self.alpha, zero=True),
            schedule=self.learning_rate,
            patience=check_count("n_iter_no_change", self.n_iter_no_change, 1),
            tol=check_positive("tol", self.tol, zero=True),
        )

    def _read(self, X: Any, y: Any, *, reset: bool) -> tuple[np.ndarray, np.ndarray]:
        x, labels = validate_data(self, X, y, dtype=FLOATS, reset=reset)
        check_classification_targets(labels)
        return x, column_or_1d(labels, warn=True)

    def _begin(self) -> None:
        if len(self.classes_) < 2:
            raise ValueError(f"y must hold at least 2 classes; got 1 class, {self.classes_.tolist()[0]!r}")
        self._random = check_random_state(self.random_state)
        self._optimizer, self.history_ = None, []

    def _codes(self, labels: np.ndarray) -> np.ndarray:
        unknown = np.setdiff1d(labels, self.classes_)
        if len(unknown):
            raise ValueError(f"y must hold labels of classes_, {self.classes_.tolist()}; got {unknown.tolist()[0]!r}")
        return np.searchsorted(self.classes_, labels)

    def _seeded(self) -> contextlib.AbstractContextManager[None]:
        return seeded(self._random.randint(2**31 - 1), torch.device(self.device))

    def _head_options(self) -> dict[str, Any]:
        return {"objective": self.objective, "beta": self.beta, "preset": self.preset, **(self.head_options or {})}

    def _settles(self) -> bool:
        """Whether a head with these options does; asked of a small one, without a trace in the random numbers."""
        with torch.random.fork_rng([]):
            return VariationalHead(1, len(self.classes_), latent_dim=self._latent_dim(), **self._head_options()).settles

    def _latent_dim(self) -> int | None:
        return None if self.latent_dim is None else check_count("latent_dim", self.latent_dim, 1)

    def _build(self, x: np.ndarray, codes: np.ndarray, weight: np.ndarray, *, samples: int | None = None) -> None:
        rows = torch.tensor(x[:2], device=self.device)
        layer = fit_standardize(x, weight).to(rows.device) if self.standardize else nn.Identity()
        model = build_model(
            self.encoder,
            layer(rows),
            len(self.classes_),
            hidden=layer_sizes(self.hidden_layer_sizes),
            latent_dim=self._latent_dim(),
            dropout=check_dropout(self.dropout),
            head_options={"samples": samples, **self._head_options()},
        )
        asked = (self.head_options or {}).get("separation") == AUTO  # it is the default too, and then nobody need be told
        if asked and not self.early_stopping and not self._folds(codes):
            self._warn_unsettled(model, "it needs the held-out data of cross_fit=5 or early_stopping=True, 20 samples or more")
        model.encoder = nn.Sequential(layer, model.encoder)
        self.model_ = model
        self._follows_labels, self._counts = model.head.label_prior.learned, np.zeros(len(self.classes_))
        self._count(codes, weight)

    def _warn_unsettled(self, model: Classifier, why: str) -> None:
        warnings.warn(f"separation='auto' stays at {model.head.separation:.2f}: {why}", stacklevel=4)

    def _count(self, codes: np.ndarray, weight: np.ndarray) -> None:
        """p(y) of the training labels so far: what a learned label prior would arrive at, known beforehand."""
        self._counts = self._counts + np.bincount(codes, weight, minlength=len(self.classes_))
        if self._follows_labels:
            set_label_prior(self.model_, self._counts / self._counts.sum())

    def _finish(self) -> Self:
        if self.class_prior is not None:
            set_label_prior(self.model_, check_probabilities("class_prior", self.class_prior, len(self.classes_)))
        self.model_.eval()
        self.class_prior_ = self.model_.head.label_prior.probs().cpu().numpy()
        self.n_iter_, self._n_features_out = len(self.history_), self.model_.head.latent_dim
        return self

    def _arrays(self, x: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> Arrays:
        equal = bool((weight == weight[0]).all())  # nothing to weigh: the plain mean is faster
        scaled = None if equal else torch.tensor((weight / weight.mean()).astype(x.dtype), device=self.device)
        return Arrays(torch.tensor(x, device=self.device), torch.tensor(codes, device=self.device), scaled)

    def _report(self, row: dict[str, Any]) -> None:
        every = 1 if self.verbose > 1 else max(1, self.max_iter // 10)
        if self.verbose and (row["epoch"] % every == 0 or row["epoch"] == self.max_iter):
            shown = ", ".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in row.items() if name in SHOWN)
            print(f"epoch {row['epoch']} of {self.max_iter}: {shown}", flush=True)

    # ------------------------------------------------------------------------------------------------------ prediction

    def predict(self, X: Any) -> np.ndarray:
        """The most probable label of each row, (N,)."""
        found = self._compute(X, lambda model, x: model.log_posterior(x).argmax(1))
        return self.classes_[found]

    def predict_proba(self, X: Any) -> np.ndarray:
        """p(y|x), (N, n_classes), in the order of `classes_`."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """log p(y|x), (N, n_classes)."""
        return self._compute(X, Classifier.log_posterior)

    def score_samples(self, X: Any) -> np.ndarray:
        """log p(z), (N,): low for inputs unlike the training data."""
        return self._compute(X, Classifier.log_evidence)

    def energy(self, X: Any) -> np.ndarray:
        """-logsumexp of a softmax layer's outputs, (N,): high for inputs unlike the training data; with many classes it tells
        more than `score_samples`."""
        return self._compute(X, Classifier.energy)

    def transform(self, X: Any) -> np.ndarray:
        """Latents z, (N, latent_dim)."""
        return self._compute(X, Classifier.latent)

    @torch.no_grad()
    def _compute(self, X: Any, function: Callable[[Classifier, Tensor], Tensor]) -> np.ndarray:
        check_is_fitted(self, "model_")
        x = torch.tensor(validate_data(self, X, dtype=FLOATS, reset=False))
        like = next(self.model_.parameters())
        with seeded(0, like.device):  # a Gaussian posterior predicts from draws: the same ones each time
            return torch.cat([function(self.model_, part.to(like)) for part in x.split(CHUNK)]).cpu().numpy()
