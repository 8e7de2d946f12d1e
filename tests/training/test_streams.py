"""Networks that select and networks that test start from different weights."""

import torch

from gcsr.models import registry
from gcsr.models.topology import EmptyTopology
from gcsr.training.fit import TrainingRecipe, fit


def _weights(purpose):
    model = registry.testing_model("gcn", 8)
    x = torch.eye(6)
    prepared = model.prepare(x, EmptyTopology(6, torch.device("cpu")))
    labels = torch.arange(6) % 2
    targets = torch.nn.functional.one_hot(labels, 2).float()
    # No learning: what comes back are the initial weights.
    recipe = TrainingRecipe(epochs=1, lr=1e-30, weight_decay=0.0)
    fitted = fit(
        model,
        prepared,
        targets,
        prepared,
        labels,
        features=6,
        recipe=recipe,
        networks=range(3),
        seed=0,
        purpose=purpose,
    )
    return fitted.params[0]


def test_selecting_and_testing_networks_share_no_initial_weights():
    selecting, testing = _weights("select"), _weights("test")
    for one in selecting:
        assert all(not torch.allclose(one, other) for other in testing)
    assert torch.equal(testing, _weights("test"))
