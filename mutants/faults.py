"""Faults that tests must notice: a text of a source file, what replaces it, and the tests to run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A change of one place of ``src/gcsr``.

    Args:
        what: the fault in a few words.
        file: below ``src/gcsr``.
        old: occurs once in the file.
        new: replaces it.
        tests: files, folders or single tests.
    """

    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


CLUSTERS = "tests/condense/test_clusters.py"
BILEVEL = "tests/condense/test_bilevel.py"
AUTOMATIC = "tests/condense/test_automatic.py"
NOT_FINITE = "tests/faults/test_not_finite.py"
RESUME = "tests/faults/test_resume.py"
COST = "tests/evaluate/test_cost.py"
TUNE = "tests/tune/test_tune.py::test_a_trial_scores_the_mean_by_networks_that_chose_nothing"
FIT = "tests/training/test_fit.py"
VIEWS = "tests/test_views.py"

FAULTS = (
    # Equations.
    Fault(
        "adjacency divided by degrees instead of their roots",
        "equations/propagation.py",
        "scale = looped.sum(-1).rsqrt()",
        "scale = looped.sum(-1).reciprocal()",
        ("tests/equations/test_propagation.py",),
    ),
    Fault(
        "a class without labeled neighbors has no prior",
        "equations/prior.py",
        "counts / totals.clamp_min(1e-300), shares)",
        "counts / totals.clamp_min(1e-300), 0 * counts)",
        ("tests/equations/test_class_prior.py",),
    ),
    Fault(
        "closed form without beta in the system",
        "equations/self_expression.py",
        "gram + (alpha + beta) * identity, pull",
        "gram + alpha * identity, pull",
        ("tests/equations/test_self_expression.py",),
    ),
    Fault(
        "gradient of the closed form with the wrong sign",
        "equations/self_expression.py",
        "return -(positive_solve(factor, gradient) @ solution.mT), None",
        "return positive_solve(factor, gradient) @ solution.mT, None",
        ("tests/equations/test_self_expression.py",),
    ),
    Fault(
        "momentum keeps what it should replace",
        "equations/self_expression.py",
        "return keep * matrix + (1 - keep) * adjacency",
        "return (1 - keep) * matrix + keep * adjacency",
        ("tests/condense/test_gcsr.py",),
    ),
    Fault(
        "derivative of the tangent kernel mirrored",
        "equations/gntk.py",
        "derivative = 1 - rho.arccos() / math.pi",
        "derivative = rho.arccos() / math.pi",
        ("tests/equations/test_gntk.py",),
    ),
    Fault(
        "cosine distance divides by squared norms",
        "equations/gradient_distance.py",
        "_root(ours) * _root(theirs) + SMOOTHING",
        "ours * theirs + SMOOTHING",
        ("tests/condense/test_gradient_parts.py",),
    ),
    # Models.
    Fault(
        "GraphSAGE's mean counts the node itself",
        "models/sparse.py",
        "sums = np.asarray(self.adjacency.sum(1), dtype=np.float64)",
        "sums = np.asarray(self.adjacency.sum(1) + 1, dtype=np.float64)",
        ("tests/models/test_model_formulas.py",),
    ),
    Fault(
        "dropout does not scale up what it keeps",
        "models/base.py",
        "return (hidden * kept).div_(1 - self.rate)",
        "return hidden * kept",
        ("tests/models", FIT),
    ),
    # Engines.
    Fault(
        "adjoint of the normalized structure twice too large in one term",
        "engines/structure.py",
        ".mul_(scale.square()).mul_(0.5)",
        ".mul_(scale.square())",
        ("tests/condense/test_students.py", "tests/condense/test_engine.py"),
    ),
    Fault(
        "a rollback does not lower the rate",
        "engines/loop.py",
        "0.5 ** self._halvings(graph)",
        "1.0 ** self._halvings(graph)",
        (NOT_FINITE,),
    ),
    Fault(
        "a rollback keeps iterates chosen after the good state",
        "engines/loop.py",
        "            self._best.restore(self._kept)",
        "            pass",
        (NOT_FINITE,),
    ),
    Fault(
        "features that are not finite count as good",
        "engines/loop.py",
        "bad |= ~step.is_finite()",
        "pass",
        (NOT_FINITE,),
    ),
    Fault(
        "large gradients of students are not scaled down",
        "engines/bilevel/engine.py",
        "torch.minimum(1 / norms, 1 / median)",
        "(1 / median).expand_as(norms)",
        (BILEVEL,),
    ),
    Fault(
        "all students are replaced in the same iteration",
        "engines/bilevel/engine.py",
        "offsets = [number * life // self.students for",
        "offsets = [0 for",
        (BILEVEL,),
    ),
    Fault(
        "rates do not fall along the cosine",
        "engines/bilevel/engine.py",
        "return 0.5 * (1 + math.cos(math.pi * iteration / self.iterations))",
        "return 1.0",
        (BILEVEL,),
    ),
    Fault(
        "adjoint of Adam's second moment twice too large",
        "engines/bilevel/window.py",
        "self.bar_second.mul_(BETA2).add_(pushed, alpha=0.5)",
        "self.bar_second.mul_(BETA2).add_(pushed, alpha=1.0)",
        (BILEVEL,),
    ),
    Fault(
        "the real loss always reads the first minibatch",
        "engines/bilevel/engine.py",
        "self._batches[number % len(self._batches)]",
        "self._batches[0]",
        (BILEVEL,),
    ),
    Fault(
        "experts are used in the same order every round",
        "engines/trajectory/engine.py",
        "torch.randperm(count, generator=generator) for _ in range(rounds)",
        "torch.arange(count) for _ in range(rounds)",
        ("tests/condense/test_engine.py", "tests/condense/test_gcsr.py"),
    ),
    Fault(
        "the learned rate moves uphill",
        "engines/trajectory/engine.py",
        "self.student_lr.sub_(",
        "self.student_lr.add_(",
        ("tests/condense/test_students.py",),
    ),
    Fault(
        "Adam of the network is not reset in a new epoch",
        "engines/gradient/engine.py",
        "        self.theta_adam.reset()\n",
        "",
        ("tests/condense/test_gradient.py",),
    ),
    Fault(
        "herding forgets what it has chosen",
        "methods/selection.py",
        "missing = missing + mean - rows[newest]",
        "missing = missing + mean",
        ("tests/condense/test_selection.py",),
    ),
    # Views.
    Fault(
        "condensing sees every label",
        "data/views.py",
        "labels = graph.y.masked_fill(hidden, -1)",
        "labels = graph.y",
        (VIEWS,),
    ),
    Fault(
        "labels leak without being asked for",
        "data/views.py",
        "every_label = graph.y[nodes] if leak_every_label else None",
        "every_label = graph.y[nodes]",
        (VIEWS,),
    ),
    Fault(
        "inductive targets are scored on the whole graph",
        "data/views.py",
        "        if graph.inductive:\n            own",
        "        if False:\n            own",
        (VIEWS,),
    ),
    # Training.
    Fault(
        "the rate does not fall in the middle of training",
        "training/fit.py",
        "lr /= 10",
        "lr /= 1",
        (FIT,),
    ),
    Fault(
        "the last of equally good epochs is kept",
        "training/fit.py",
        "better = scores > best.validation",
        "better = scores >= best.validation",
        (FIT,),
    ),
    Fault(
        "replayed start weights are overwritten by later epochs",
        "training/trajectories.py",
        "at_start = tuple(p.clone() for p in state.params)",
        "at_start = state.params",
        ("tests/experts/test_experts.py",),
    ),
    Fault(
        "cache key without the device's arithmetic",
        "training/expert_recipe.py",
        '        "arithmetic": arithmetic(device),\n',
        "",
        ("tests/experts/test_expert_cache.py",),
    ),
    Fault(
        "stored experts are not compared with their checksum",
        "training/expert_cache.py",
        'if metadata.get("checksum") != str(checksum):',
        "if False:",
        ("tests/experts/test_expert_cache.py",),
    ),
    # Starts.
    Fault(
        "temperature fitted on training nodes",
        "starts/pseudo_labels.py",
        "temperature = best_temperature(held_out, labels)",
        "temperature = best_temperature(predicted[visible.train], visible.train_labels)",
        (CLUSTERS,),
    ),
    Fault(
        "the labeler that validates worse is used",
        "starts/pseudo_labels.py",
        "best = max(found,",
        "best = min(found,",
        (CLUSTERS,),
    ),
    Fault(
        "unlabeled nodes teach nothing",
        "starts/pseudo_labels.py",
        "(supervised + disagreement).sum()",
        "supervised.sum()",
        (CLUSTERS,),
    ),
    Fault(
        "dropped rows not rescaled",
        "starts/pseudo_labels.py",
        "kept.float() / (1 - DROPPED)",
        "kept.float()",
        (CLUSTERS,),
    ),
    Fault(
        "columns never dropped",
        "starts/pseudo_labels.py",
        "left = first * self.words(torch.ones_like(first[..., :1]))",
        "left = first",
        (CLUSTERS,),
    ),
    Fault(
        "jitter of sampled rows ignores the features' scale",
        "starts/sample.py",
        "JITTER * size * noise.to(x)",
        "JITTER * noise.to(x)",
        ("tests/condense/test_initialise.py",),
    ),
    Fault(
        "jitter of centers ignores the features' scale",
        "starts/clusters.py",
        "JITTER * size * noise",
        "JITTER * noise",
        (CLUSTERS,),
    ),
    Fault(
        "nodes left over all go to the first class",
        "starts/sample.py",
        "budget[int(missing.argmax())] += 1",
        "budget[int(present.double().argmax())] += 1",
        ("tests/condense/test_class_budget.py",),
    ),
    # The automatic mode.
    Fault(
        "outer steps begin at the worst start",
        "auto/automatic.py",
        "            max(\n                (one for one in tried if",
        "            min(\n                (one for one in tried if",
        (AUTOMATIC,),
    ),
    Fault(
        "finalists are ordered by the first comparison",
        "auto/automatic.py",
        'key=lambda one: one.validation["final"])',
        'key=lambda one: one.validation.get("quick", 0.0))',
        (AUTOMATIC,),
    ),
    Fault(
        "the final networks chose before",
        "auto/automatic.py",
        "FINAL_NETWORKS, FINAL_SEED = range(3), 1",
        "FINAL_NETWORKS, FINAL_SEED = range(3), 0",
        (AUTOMATIC,),
    ),
    Fault(
        "the scaling that validates worst is chosen",
        "auto/scaling.py",
        "max(compared, key",
        "min(compared, key",
        ("tests/condense/test_scaling.py",),
    ),
    # Evaluation and cost.
    Fault(
        "epochs are selected on test nodes",
        "evaluation/trial.py",
        "self.validation = view.validation()",
        "self.validation = view.test()",
        ("tests/evaluate/test_protocol.py",),
    ),
    Fault(
        "a user's module is tested at its last epoch",
        "evaluation/modules.py",
        "if score > best:",
        "if True:",
        ("tests/evaluate/test_modules.py",),
    ),
    Fault(
        "the loss by sparsifying is measured with the networks that chose",
        "evaluation/sparsify.py",
        "range(self.runs), range(self.runs, 2 * self.runs)",
        "range(self.runs), range(self.runs)",
        ("tests/condense/test_sparsify.py",),
    ),
    Fault(
        "a condensed graph of other data is accepted",
        "evaluation/origin.py",
        "if known != graph.content_hash and check_origin:",
        "if False:",
        ("tests/evaluate/test_protocol.py", COST),
    ),
    Fault(
        "every random subset is the same",
        "evaluation/cost.py",
        "others = range(seed + 1, seed + count)",
        "others = [seed] * (count - 1)",
        (COST,),
    ),
    Fault(
        "break-even with small and whole swapped",
        "evaluation/cost.py",
        "(took, seconds[SMALL, r], seconds[WHOLE, r])",
        "(took, seconds[WHOLE, r], seconds[SMALL, r])",
        (COST,),
    ),
    # Checkpoints.
    Fault(
        "a damaged checkpoint is used",
        "utils/checkpoint.py",
        'if metadata.get("checksum") != _checksum(tensors, metadata["values"]):',
        "if False:",
        (RESUME,),
    ),
    Fault(
        "the checkpoint of another run is used",
        "utils/checkpoint.py",
        "elif found == json.loads(self._run):",
        "elif True:",
        (RESUME,),
    ),
    # Tuning.
    Fault(
        "trials are scored by the networks that chose",
        "tuning/study.py",
        "SCORER_NETWORKS, SCORER_SEED = 5, 1",
        "SCORER_NETWORKS, SCORER_SEED = 5, 0",
        (TUNE,),
    ),
    Fault(
        "a trial scores its best graph instead of the mean",
        "tuning/search.py",
        "return sum(scores) / len(scores)",
        "return max(scores)",
        (TUNE,),
    ),
    # Data and datasets.
    Fault(
        "self-loops stay in the graph",
        "data/edges.py",
        "keep = (coo.row != coo.col) & (values != 0)",
        "keep = values != 0",
        ("tests/graph/test_edge_rules.py",),
    ),
    Fault(
        "edge weights are not written",
        "data/npz.py",
        "if graph.is_weighted:",
        "if False:",
        ("tests/graph/test_graph_files.py",),
    ),
    Fault(
        "a condensed graph may have negative edges",
        "data/condensed.py",
        "require(low >= 0, f",
        "require(True, f",
        ("tests/test_condensed.py",),
    ),
    Fault(
        "test rows of Planetoid are not put into their order",
        "datasets/readers.py",
        "order[test] = known + np.arange(test.size)",
        "order[np.sort(test)] = known + np.arange(test.size)",
        ("tests/datasets/test_planetoid.py",),
    ),
    Fault(
        "a download that was cut off is kept",
        "datasets/download.py",
        "if announced is not None and received != int(announced):",
        "if False:",
        ("tests/datasets/test_download.py",),
    ),
    # Graphs larger than memory.
    Fault(
        "propagation continues from rows of another graph",
        "outofcore/hops.py",
        'if note["key"] == self._key and min(rows) >= 0 and long_enough:',
        "if min(rows) >= 0 and long_enough:",
        ("tests/blocks/test_resumed_hops.py",),
    ),
    Fault(
        "classes on disk are those of the last expert",
        "outofcore/predict.py",
        "(total / len(experts)).argmax(1).cpu()",
        "prediction.argmax(1).cpu()",
        ("tests/blocks/test_same_bytes.py",),
    ),
    # Command line.
    Fault(
        "errors of the user have the exit code of a crash",
        "cli/app.py",
        "USER_ERROR = 2",
        "USER_ERROR = 1",
        ("tests/cli/test_bad_input.py",),
    ),
)
