"""One outer step of bilevel condensation: the engine beside a plain autograd loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.speed.row import BenchRow, median_ms, relative_error, synchronize
from gcsr.engines.bilevel.window import (
    BETA1,
    BETA2,
    EPSILON,
    InnerAdam,
    SmallGraph,
    Students,
    Window,
    students_apart,
)
from gcsr.methods.bilevel import Bilevel
from gcsr.models.mlp import MLP
from gcsr.utils.devices import make_generator, record, warm_up
from gcsr.utils.errors import require_one_of
from gcsr.utils.parallel import single_threaded

Params = tuple[Tensor, ...]
DTYPES = {torch.float32: "float32", torch.float64: "float64"}


@dataclass(frozen=True)
class BilevelCase:
    """Nodes of a condensed graph, features and classes."""

    nodes: int
    features: int
    classes: int


BILEVEL_CASES = {
    "cora-70": BilevelCase(70, 1433, 7),
    "citeseer-60": BilevelCase(60, 3703, 6),
    "facebook-40": BilevelCase(40, 4714, 4),
    "wordnet-440": BilevelCase(440, 2500, 44),
}


@dataclass(frozen=True, eq=False)
class Inputs:
    """A condensed graph, students that have trained a little, and the gradient of a real loss."""

    x: Tensor
    logits: Tensor
    students: Students
    upstream: Params
    adam: InnerAdam

    def to(self, dtype: torch.dtype, device: torch.device) -> Inputs:
        """The same elsewhere, on memory of its own."""
        s = self.students
        params, first, second = (
            tuple(t.to(device, dtype, copy=True) for t in group)
            for group in (s.params, s.first, s.second)
        )
        students = Students(params, first, second, s.age.to(device, dtype, copy=True))
        upstream = tuple(t.to(device, dtype) for t in self.upstream)
        x, logits = self.x.to(device, dtype), self.logits.to(device, dtype)
        return Inputs(x, logits, students, upstream, self.adam)


def bench_bilevel(name: str, device: torch.device, *, dtype: torch.dtype, repeats: int) -> BenchRow:
    """Milliseconds of an outer step of one graph; on a CPU both on one thread.

    The plain loop is the published algorithm: students are trained from scratch to their age, by
    torch's Adam, and the last steps are recorded and differentiated by autograd. The engine keeps
    students in training, so that it pays for the differentiated steps and a share of a burn-in. The
    real loss is the same code for both and is left out: its gradient is given. Errors are those of the
    differentiated steps from the same students, against the plain loop in float64.
    """
    require_one_of("case", name, BILEVEL_CASES)
    method = Bilevel(nodes=1)
    with single_threaded():
        exact_inputs = prepared(BILEVEL_CASES[name], method)
        inputs = exact_inputs.to(dtype, device)
        exact = plain_gradients(exact_inputs, method.window)
        engine = Engine(inputs, method.window)
        found = tuple(t.clone() for t in engine.gradients())
        window_ms = median_ms(
            lambda: plain_gradients(inputs, method.window), device, repeats=repeats
        )
        # Students are as old as the mean of their ages says when their last steps are recorded.
        before = (method.burn_in + method.longest) // 2 - method.window
        training_ms = before * median_ms(plain_training(inputs), device, repeats=5 * repeats)
        engine_ms = engine.measured_ms(device, repeats)
        burn_in_ms = engine.burn_in_ms(method, device, repeats)
    return BenchRow(
        bench="bilevel",
        case=name,
        device=device.type,
        reference_ms=window_ms + training_ms,
        engine_ms=engine_ms + burn_in_ms,
        loss_error=relative_error(found[2], exact[2]),
        gradient_error=max(relative_error(a, b) for a, b in zip(found[:2], exact[:2], strict=True)),
        unit="one graph, one outer step",
        note=f"{method.students} students, window of {method.window}, {DTYPES[dtype]}; the window"
        f" alone: {window_ms:.3g} and {engine_ms:.3g} ms; without the real loss, which both share",
    )


def prepared(shape: BilevelCase, method: Bilevel) -> Inputs:
    """Random rows of unit length, soft labels, and students after their burn-in, in float64."""
    generator = make_generator(0, "bench of bilevel")
    n, d, c = shape.nodes, shape.features, shape.classes
    x = torch.randn((1, n, d), generator=generator, dtype=torch.float64)
    x = x / x.norm(dim=-1, keepdim=True)
    classes = torch.arange(n) * c // n
    logits = 3 * torch.nn.functional.one_hot(classes, c).double().unsqueeze(0)
    widths = (d, method.hidden_channels, c)
    students = Students.zeros(1, method.students, widths, x)
    model = MLP(method.hidden_channels)
    newcomer = Students.zeros(1, 1, widths, x)
    for number in range(method.students):
        newcomer.begin(model.init(d, c, generator))
        students.take(number, newcomer)
    adam = InnerAdam(method.student_lr, method.student_weight_decay)
    small = SmallGraph(x, None, logits.softmax(-1))
    Window(students, adam, method.burn_in, keep=False).advance(small)
    upstream = tuple(
        torch.randn(p.shape, generator=generator, dtype=torch.float64) / p.numel() ** 0.5
        for p in students.params
    )
    return Inputs(x, logits, students, upstream, adam)


class Engine:
    """The window and its adjoint from the same students every time."""

    def __init__(self, inputs: Inputs, steps: int) -> None:
        self._inputs = inputs
        self._before = tuple(t.clone() for t in inputs.students.buffers())
        self._window = Window(inputs.students, inputs.adam, steps)
        self._found: tuple[Tensor, ...] = ()

    def _body(self) -> None:
        inputs = self._inputs
        for tensor, before in zip(inputs.students.buffers(), self._before, strict=True):
            tensor.copy_(before)
        y = inputs.logits.softmax(-1)
        small = SmallGraph(inputs.x, None, y)
        self._window.advance(small)
        g_x, _, g_y = self._window.adjoint(
            small, inputs.upstream, lambda found: torch.ones_like(found[:, :, 0, 0])
        )
        g_logits = y * (g_y - (y * g_y).sum(-1, keepdim=True))
        self._found = (g_x, g_logits, inputs.students.params[0])

    def gradients(self) -> tuple[Tensor, ...]:
        """Gradients of X' and of the logits of Y', and the first weights after the window."""
        self._body()
        return self._found

    def measured_ms(self, device: torch.device, repeats: int) -> float:
        """As the engine runs: on CUDA recorded and replayed."""
        if device.type != "cuda":
            return median_ms(self._body, device, repeats=repeats)
        warm_up(self._body)
        replay = record(self._body)
        synchronize(device)
        return median_ms(lambda: [replay() for _ in range(10)], device, repeats=repeats) / 10

    def burn_in_ms(self, method: Bilevel, device: torch.device, repeats: int) -> float:
        """What new students cost an iteration: every student is replaced once per life."""
        inputs = self._inputs
        widths = (inputs.x.shape[-1], method.hidden_channels, inputs.logits.shape[-1])
        newcomer = Students.zeros(1, 1, widths, inputs.x)
        window = Window(newcomer, inputs.adam, method.burn_in, keep=False)
        small = SmallGraph(inputs.x, None, inputs.logits.softmax(-1))
        body: Callable[[], None] = lambda: window.advance(small)  # noqa: E731
        if device.type == "cuda":
            warm_up(body)
            body = record(body)
        life = max(1, (method.longest - method.burn_in) // method.window)
        return median_ms(body, device, repeats=repeats) * method.students / life


def plain_training(inputs: Inputs) -> Callable[[], None]:
    """One step of ordinary training of all students."""
    s, adam = inputs.students, inputs.adam
    x, y = inputs.x[0], inputs.logits[0].softmax(-1)
    params = [p.clone().requires_grad_() for p in _batches(s.params, s.age.shape[1])]
    optimizer = torch.optim.Adam(params, lr=adam.lr, weight_decay=adam.weight_decay)

    def step() -> None:
        w1, b1, w2, b2 = params
        output = (x @ w1 + b1).relu() @ w2 + b2
        loss = -(y * output.log_softmax(-1)).sum(-1).mean(-1).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def plain_gradients(inputs: Inputs, steps: int) -> tuple[Tensor, ...]:
    """The same by autograd: students along a batch dimension, every step recorded."""
    s, adam = inputs.students, inputs.adam
    count = s.age.shape[1]
    x = inputs.x[0].detach().clone().requires_grad_()
    logits = inputs.logits[0].detach().clone().requires_grad_()
    y = logits.softmax(-1)
    params, first, second = (_batches(group, count) for group in (s.params, s.first, s.second))
    params = [p.clone().requires_grad_() for p in params]
    age = s.age[0].view(-1, 1, 1)
    for step in range(1, steps + 1):
        w1, b1, w2, b2 = params
        output = (x @ w1 + b1).relu() @ w2 + b2
        loss = -(y * output.log_softmax(-1)).sum(-1).mean(-1).sum()
        gradients = torch.autograd.grad(loss, params, create_graph=True)
        t = age + step
        for i, gradient in enumerate(gradients):
            g = gradient + adam.weight_decay * params[i]
            first[i] = BETA1 * first[i] + (1 - BETA1) * g
            second[i] = BETA2 * second[i] + (1 - BETA2) * g * g
            below = (second[i] / (1 - BETA2**t)).sqrt() + EPSILON
            params[i] = params[i] - adam.lr * (first[i] / (1 - BETA1**t)) / below
    pairs = zip(params, _batches(inputs.upstream, count), strict=True)
    total = torch.stack([(p * u).sum() for p, u in pairs]).sum()
    g_x, g_logits = torch.autograd.grad(total, (x, logits))
    side_by_side = params[0].detach().transpose(0, 1).flatten(1)
    return g_x.unsqueeze(0), g_logits.unsqueeze(0), side_by_side.unsqueeze(0)


def _batches(group: Params, students: int) -> list[Tensor]:
    """The four weights of one graph's students, ``(S, ...)``."""
    w1, b1, w2, b2 = group
    return [*(students_apart(p, students)[0] for p in (w1, b1)), w2[0], b2[0]]
