"""From WordNet's own files to a condensed graph and a GAT of PyG that was trained on it.

apt install wordnet-base                      # or NLTK's corpus wordnet, or --root FOLDER
python examples/wordnet.py --nodes 440
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.nn import GAT

import gcsr


def main(argv: Sequence[str] | None = None) -> float:
    """Condense, train, test; the test accuracy in percent."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", help="folder of data.noun, data.verb, data.adj and data.adv")
    parser.add_argument("--nodes", type=int, default=440, help="condensed nodes")
    parser.add_argument("--budget", type=float, default=240.0, help="most seconds of condensing")
    parser.add_argument("--epochs", type=int, default=300, help="of the GAT")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    graph = gcsr.load("wordnet", root=args.root)
    began = time.perf_counter()
    small = gcsr.condense(graph, nodes=args.nodes, budget=args.budget, seed=args.seed)
    print(f"{graph}\n{small}\ncondensed in {time.perf_counter() - began:.1f} s")

    torch.manual_seed(args.seed)
    data, real = small.to_pyg(), graph.to_pyg()
    gat = GAT(graph.num_features, 64, num_layers=2, out_channels=graph.num_classes, heads=4)
    adam = torch.optim.Adam(gat.parameters(), lr=0.01, weight_decay=5e-4)
    began = time.perf_counter()
    for _ in range(args.epochs):
        adam.zero_grad()
        cross_entropy(gat(data.x, data.edge_index), data.get("y_soft", data.y)).backward()
        adam.step()
    print(f"trained on {small.num_nodes} nodes in {time.perf_counter() - began:.1f} s")

    gat.eval()
    with torch.no_grad():
        right = gat(real.x, real.edge_index).argmax(1) == real.y
    accuracy = 100 * float(right[real.test_mask].float().mean())
    print(f"test accuracy on the real graph: {accuracy:.1f} %")
    return accuracy


if __name__ == "__main__":
    main()
