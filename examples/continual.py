"""Continual learning: classes arrive in a stream and are remembered as condensed graphs.

    python examples/continual.py                                    # digits, needs no download
    python examples/continual.py --data cora --nodes 70 --iterations 1000

Every task is the part of the graph with a few new classes. When it has passed, its graph is gone; what
stays is a condensed graph of a few nodes. After every task the network has to tell all classes seen so
far apart, on test nodes of all tasks. Four ways to learn:

    condensed replay   a fresh network trained on the condensed graphs of all tasks so far
    random replay      the same with as many real training nodes and the edges among them
    no replay          one network that goes on with the newest task alone, and forgets
    joint              a fresh network trained on the whole graphs of all tasks so far: the upper end

Labels say which task a node belongs to, as in every stream of class increments; beyond that, training
and condensing see those of training nodes only. Settings were chosen by validation accuracy on digits.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCN

import gcsr
from gcsr.pyg import Condense

WAYS = ("condensed replay", "random replay", "no replay", "joint")


def main(argv: Sequence[str] | None = None) -> dict[str, list[float]]:
    """Run the stream; accuracy over all classes seen so far, after every task, by way of learning."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="digits", help="a dataset's name or a graph file")
    parser.add_argument(
        "--nodes", type=int, default=50, help="condensed nodes of all tasks together"
    )
    parser.add_argument("--classes", type=int, default=2, help="new classes per task")
    parser.add_argument("--iterations", type=int, default=200, help="of condensing")
    parser.add_argument("--experts", type=int, default=5, help="of condensing")
    parser.add_argument("--runs", type=int, default=2, help="networks per way of learning")
    parser.add_argument("--epochs", type=int, default=150, help="per network and task")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    graph = gcsr.load(args.data)
    stream = tasks(graph.to_pyg(), graph.num_classes, args.classes)
    memories: dict[str, list[Data]] = {"condensed replay": [], "random replay": []}
    # Two classes are told apart so easily that validation cannot choose between iterates.
    settings = {
        "method": "gcsr",
        "iterations": args.iterations,
        "experts": args.experts,
        "iterate": "last",
    }
    going_on = [network(graph, args.seed + run) for run in range(args.runs)]
    accuracy: dict[str, list[float]] = {way: [] for way in WAYS}
    at_first: dict[str, list[float]] = {way: [] for way in WAYS}
    at_last: dict[str, list[float]] = {}

    for number, task in enumerate(stream):
        nodes = max(task.num_new, round(args.nodes * task.num_new / graph.num_classes))
        for way, how in (("condensed replay", settings), ("random replay", {"method": "random"})):
            memories[way].append(remember(task, nodes, seed=args.seed, **how))
        lessons = {way: joined(memory) for way, memory in memories.items()}
        lessons["joint"] = joined(stream[: number + 1])
        for way in WAYS:
            if way == "no replay":
                learners, lesson = going_on, task
            else:
                learners = [network(graph, args.seed + run) for run in range(args.runs)]
                lesson = lessons[way]
            for learner in learners:
                train(learner, lesson, args.epochs)
            scores = [mean_accuracy(learners, seen) for seen in stream[: number + 1]]
            sizes = [int(seen.test_mask.sum()) for seen in stream[: number + 1]]
            right = sum(score * size for score, size in zip(scores, sizes, strict=True))
            accuracy[way].append(right / sum(sizes))
            at_first[way].append(scores[-1])
            at_last[way] = scores

    tell(graph, stream, memories, accuracy, at_first, at_last)
    return accuracy


def tasks(data: Data, num_classes: int, per_task: int) -> list[Data]:
    """The graph of every task; a class that is left over joins the last ones."""
    firsts = list(range(0, num_classes, per_task))
    if num_classes - firsts[-1] < 2:
        firsts.pop()
    ends = [*firsts[1:], num_classes]
    parts = []
    for first, end in zip(firsts, ends, strict=True):
        part = data.subgraph((data.y >= first) & (data.y < end))
        part.first_class, part.num_new = first, end - first
        parts.append(part)
    return parts


def remember(task: Data, nodes: int, **settings: object) -> Data:
    """A task as a small graph: the transform sees its classes as 0, 1, ..."""
    shifted = task.clone()
    shifted.y = task.y - task.first_class
    small = Condense(nodes=nodes, name="task", **settings)(shifted)
    small.y = small.y + task.first_class
    return small


def joined(graphs: Sequence[Data]) -> Data:
    """Several graphs as one without edges between them."""
    parts = []
    for one in graphs:
        weight = one.get("edge_weight")
        weight = torch.ones(one.num_edges) if weight is None else weight
        part = Data(x=one.x, edge_index=one.edge_index, edge_weight=weight, y=one.y)
        part.train_mask = one.train_mask
        parts.append(part)
    return Batch.from_data_list(parts)


def network(graph: gcsr.Graph, seed: int) -> GCN:
    """A fresh network over all classes, those to come included."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return GCN(graph.num_features, 64, num_layers=2, out_channels=graph.num_classes)


def train(module: GCN, data: Data, epochs: int) -> None:
    """Plain training; the last epoch counts."""
    adam = torch.optim.Adam(module.parameters(), lr=0.01, weight_decay=5e-4)
    module.train()
    for _ in range(epochs):
        adam.zero_grad()
        scores = module(data.x, data.edge_index, edge_weight=data.get("edge_weight"))
        cross_entropy(scores[data.train_mask], data.y[data.train_mask]).backward()
        adam.step()


@torch.no_grad()
def mean_accuracy(modules: Sequence[GCN], task: Data) -> float:
    """Percent of a task's test nodes that are told from all classes, not from the task's alone."""
    found = []
    for module in modules:
        module.eval()
        scores = module(task.x, task.edge_index, edge_weight=task.get("edge_weight"))
        right = scores.argmax(1)[task.test_mask] == task.y[task.test_mask]
        found.append(100 * float(right.double().mean()))
    return sum(found) / len(found)


def tell(
    graph: gcsr.Graph,
    stream: Sequence[Data],
    memories: dict[str, list[Data]],
    accuracy: dict[str, list[float]],
    at_first: dict[str, list[float]],
    at_last: dict[str, list[float]],
) -> None:
    """The table: accuracy over all classes seen, and what was forgotten of the earlier ones."""
    print(f"{graph.name}: {len(stream)} tasks; test accuracy in percent over all classes so far")
    heads = "".join(f"{'task ' + str(i + 1):>9}" for i in range(len(stream)))
    print(f"{'':<18}{heads}{'forgotten':>11}{'nodes kept':>12}")
    for way in WAYS:
        lost = [a - b for a, b in zip(at_first[way][:-1], at_last[way][:-1], strict=True)]
        forgotten = sum(lost) / max(1, len(lost))
        kept = sum(part.num_nodes for part in memories.get(way, stream if way == "joint" else []))
        row = "".join(f"{value:>9.1f}" for value in accuracy[way])
        print(f"{way:<18}{row}{forgotten:>11.1f}{kept:>12,}")


if __name__ == "__main__":
    main()
