"""A process that has imported torch and forks a `varclass` command for every line it is sent: a real process without the
import, to kill, to stop, or to run beside another.

It answers {"arguments": ..., "folder": ...} with a pid and {"wait": pid} with the exit code, minus the signal if one killed it.
What the command prints goes to folder/stdout and folder/stderr.
"""

import contextlib
import json
import os
import resource
import signal
import sys
import threading
from pathlib import Path

LONGEST = 90  # seconds; a command that hangs is killed then
CHANGES = ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree")


def die_at(count, watched, seconds=0):
    """Have this process killed before the `count`-th operation, from 1, on files whose path begins with `watched`.

    Or so many seconds after it, wherever it is by then; it may have ended.
    """
    left = count

    def see(event, arguments):
        nonlocal left
        if event in CHANGES or event == "open":
            path = str(arguments[0])  # rmtree calls what it removes by its name alone
            if path.startswith(watched) or (watched.endswith("/") and event in CHANGES and "/" not in path):
                left -= 1
                if left == 0 and seconds:
                    threading.Timer(seconds, send_myself, [signal.SIGKILL]).start()
                elif left == 0:
                    send_myself(signal.SIGKILL)

    sys.addaudithook(see)


def freeze_at(name):
    """Have this process stop before it first opens a file of this name, until it is sent SIGCONT."""
    frozen = False

    def see(event, arguments):
        nonlocal frozen
        if event == "open" and not frozen and os.path.basename(str(arguments[0])) == name:
            frozen = True
            send_myself(signal.SIGSTOP)

    sys.addaudithook(see)


def send_myself(signum):
    os.kill(os.getpid(), signum)


def command(order):
    from varclass.__main__ import main  # noqa: PLC0415

    signal.alarm(LONGEST)
    os.environ.update(order.get("environment", {}))
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(Path(order["folder"]) / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    if "largest_file" in order:
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["largest_file"],) * 2)
    if "die_at" in order:
        die_at(*order["die_at"])
    if "freeze_at" in order:
        freeze_at(order["freeze_at"])
    sys.argv = ["varclass", *order["arguments"]]
    code = 1
    try:
        main()
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def serve():
    import accelerate  # noqa: F401, PLC0415
    import safetensors.torch  # noqa: F401, PLC0415
    import sklearn.datasets  # noqa: F401, PLC0415
    import torch._dynamo  # noqa: F401, PLC0415 (an optimizer's first use imports it)

    import varclass.cli.progress  # noqa: PLC0415
    import varclass.training.loop  # noqa: F401, PLC0415
    from varclass.cli.app import run  # noqa: PLC0415
    from varclass.data.loading import load  # noqa: PLC0415

    load("digits")
    with contextlib.redirect_stdout(None):
        run(["runs", "--runs-dir", os.devnull])  # the first command imports what reads its arguments
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            answer = os.waitstatus_to_exitcode(os.waitpid(order["wait"], 0)[1])
        else:
            answer = os.fork()
            if answer == 0:
                command(order)
        print(answer, flush=True)


if __name__ == "__main__":
    serve()
