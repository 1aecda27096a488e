"""Numbers from predictions: scores, calibration, detection, conformal sets, scaling, label shift, intervals, latents."""

from varclass.metrics.calibration import Reliability, adaptive_ece, classwise_ece, ece, mce, reliability
from varclass.metrics.conformal import Conformal, fit_conformal, set_summary
from varclass.metrics.curves import Histograms, Roc, histograms, roc_curve
from varclass.metrics.detection import aupr, auroc, detection_scores, fpr_at_tpr, mahalanobis, separation
from varclass.metrics.ensemble import ensemble
from varclass.metrics.intervals import Interval, bootstrap, over_seeds, paired_difference, wilson
from varclass.metrics.label_shift import estimate_label_prior, label_shift, replace_label_prior
from varclass.metrics.latents import Moments, gaussian_kl, moments, typicality
from varclass.metrics.normality import Normality, normality
from varclass.metrics.predictions import Predictions
from varclass.metrics.scaling import Scaling, TemperatureScaling, VectorScaling
from varclass.metrics.scores import (
    RiskCoverage,
    accuracy,
    aurc,
    brier,
    e_aurc,
    negative_log_likelihoods,
    nll,
    risk_coverage,
    top_k_accuracy,
)
from varclass.metrics.summary import score

__all__ = [
    "Conformal",
    "Histograms",
    "Interval",
    "Moments",
    "Normality",
    "Predictions",
    "Reliability",
    "RiskCoverage",
    "Roc",
    "Scaling",
    "TemperatureScaling",
    "VectorScaling",
    "accuracy",
    "adaptive_ece",
    "aupr",
    "aurc",
    "auroc",
    "bootstrap",
    "brier",
    "classwise_ece",
    "detection_scores",
    "e_aurc",
    "ece",
    "ensemble",
    "estimate_label_prior",
    "fit_conformal",
    "fpr_at_tpr",
    "gaussian_kl",
    "histograms",
    "label_shift",
    "mahalanobis",
    "mce",
    "moments",
    "negative_log_likelihoods",
    "nll",
    "normality",
    "over_seeds",
    "paired_difference",
    "reliability",
    "replace_label_prior",
    "risk_coverage",
    "roc_curve",
    "score",
    "separation",
    "set_summary",
    "top_k_accuracy",
    "typicality",
    "wilson",
]
