"""varclass as a scikit-learn estimator: `pip install 'varclass[sklearn]'`."""

try:
    import sklearn  # noqa: F401
except ImportError as error:
    raise ImportError("VariationalClassifier needs scikit-learn: pip install 'varclass[sklearn]'") from error

from varclass.integrations.sklearn.estimator import VariationalClassifier

__all__ = ["VariationalClassifier"]
