# What a new method is written with; `__init__.py` imports each when it is first used.
from gcsr.engines.result import CondensationResult as CondensationResult
from gcsr.engines.result import Context as Context
from gcsr.methods.base import Condenser as Condenser
from gcsr.methods.registry import register as register
from gcsr.starts.sample import block_labels as block_labels
from gcsr.starts.sample import class_budget as class_budget
from gcsr.starts.sample import propagated_features as propagated_features
from gcsr.starts.sample import sample_training_rows as sample_training_rows
from gcsr.utils.devices import make_generator as make_generator
from gcsr.utils.errors import Bounds as Bounds
from gcsr.utils.errors import Count as Count
from gcsr.utils.errors import Rate as Rate
from gcsr.utils.errors import Share as Share
from gcsr.utils.errors import Weight as Weight
from gcsr.utils.errors import Whole as Whole
from gcsr.utils.errors import real_number as real_number
from gcsr.utils.errors import whole_number as whole_number
