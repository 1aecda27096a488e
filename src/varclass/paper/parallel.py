"""Several models at once, each in a process of its own on the same device: small networks leave most of a GPU idle.

What is measured goes back to the one process that writes results. A signal stops all of them: each saves where it was.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from types import FrameType

import torch

from varclass.paper.measured import MeasuredRun
from varclass.paper.measuring import Job, Task, train_and_measure
from varclass.training.interruption import Interrupted, Interruption
from varclass.training.reporting import Reporter

LOOK = 0.5  # seconds between looks at whether to stop


@dataclass(frozen=True)
class Done:
    """What came of one model: its runs by recipe, and what there is to say of it."""

    found: tuple[tuple[str, MeasuredRun], ...] = ()
    warnings: tuple[str, ...] = ()


def at_once(
    tasks: Sequence[Task], processes: int, ended: Callable[[int, int, Job], None], warn: Callable[[str], None]
) -> Iterator[tuple[str, MeasuredRun]]:
    """By recipe, what is measured of each model as soon as all of it is."""
    others = multiprocessing.active_children()
    context = multiprocessing.get_context("spawn")  # a process that has used a GPU cannot be forked
    pool = ProcessPoolExecutor(processes, context, initializer=_prepare, initargs=(processes,))
    with Interruption() as interruption:
        try:
            pending = {pool.submit(_run, task): task for task in tasks}
            for position, future in enumerate(_as_they_end(set(pending), interruption)):
                done = future.result()
                if not done.found:  # somebody told that process alone to stop
                    raise Interrupted(signal.SIGTERM)
                for message in done.warnings:
                    warn(message)
                ended(position, len(tasks), pending[future].job)
                yield from done.found
        except BrokenProcessPool as error:
            if interruption.requested:
                raise Interrupted(interruption.requested) from None
            advice = "take fewer; the same command goes on where it was"
            raise ValueError(f"one of {processes} processes died, maybe for want of memory: {advice}") from error
        finally:
            for child in multiprocessing.active_children():
                if child not in others:
                    child.terminate()  # see `_stop`; in training it saves first
            pool.shutdown(cancel_futures=True)


def _as_they_end(pending: set[Future[Done]], interruption: Interruption) -> Iterator[Future[Done]]:
    while pending:
        ended, pending = wait(pending, LOOK, FIRST_COMPLETED)
        if interruption.requested:
            raise Interrupted(interruption.requested)
        yield from ended


class _Here:
    """Of a process that trains: whether it is at work, and whether it was told to stop."""

    busy = False
    stopped = False


def _prepare(processes: int) -> None:
    """In a new process: a share of the CPU, and Ctrl-C is for the one that started it, which tells the others."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _stop)
    torch.set_num_threads(max(1, torch.get_num_threads() // processes))


def _stop(signum: int, frame: FrameType | None) -> None:
    _Here.stopped = True
    if _Here.busy:
        raise Interrupted(signum)


def _run(task: Task) -> Done:
    if _Here.stopped:  # it was waiting in line
        return Done()
    warnings: list[str] = []
    _Here.busy = True
    try:
        return Done(tuple(train_and_measure(task, Reporter(), warnings.append)), tuple(warnings))
    except Interrupted:
        _Here.stopped = True
        return Done()
    finally:
        _Here.busy = False
