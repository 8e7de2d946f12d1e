"""A condensed graph beside the real one: numbers and plain arrays, and figures of them."""

from gcsr.analyse.analysis import Analysis, analyse
from gcsr.analyse.portrait import Portrait, portrait
from gcsr.analyse.spaces import SPACES, FeatureSpace

__all__ = ["SPACES", "Analysis", "FeatureSpace", "Portrait", "analyse", "portrait"]
