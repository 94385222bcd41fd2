"""`make demo`: everything that Aftersend needs on one machine, started, watched and ended."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path

from config import embedded, workers
from config.demo_secrets import kept_secrets
from config.supervision import ports
from config.supervision.kept import Child
from config.supervision.supervise import AlreadyRunning, StartFailed, Stopped, Supervisor

ROOT = Path(__file__).resolve().parents[1]
WEB_PORT = "8000"
SANDBOX_PORT = "8010"
DATABASE = "aftersend"
# The demo's own values where the caller gives none: whom its links name, and a policy that lets
# scenario orders be tried all day.
_USUAL = {
    "AFTERSEND_LINK_HOSTS": "shop.example,help.example",
    "AFTERSEND_POLICY_FILE": str(ROOT / "review" / "demo" / "policy.toml"),
}


def main() -> int:
    """0 after a stop, 1 when something did not start, 2 when it runs already, 130 interrupted."""
    began = time.monotonic()
    run_dir = embedded.run_dir_from_environment(ROOT)
    home = embedded.home_for(ROOT, run_dir, "demo")
    database, bell = embedded.servers_for(home, "demo")
    pid_files = [
        (database.cluster / "postmaster.pid", str(database.cluster)),
        (bell.pid_file, str(bell.socket)),
    ]
    print("Starting. The line “Open http://…” comes when the console listens.", flush=True)
    try:
        with Supervisor(run_dir, root=ROOT, pid_files=pid_files) as demo:
            _prepare(demo, run_dir)
            _ensure_servers(demo, database, bell)
            _start(demo)
            print(
                f"\nOpen {demo.address}: Aftersend listens after {time.monotonic() - began:.1f} s."
            )
            print("Sign in with a name and password printed above; Ctrl-C stops.", flush=True)
            demo.watch()
            print("\nStopping; work in progress may finish. Ctrl-C again ends it at once.")
    except AlreadyRunning as running:
        print(running, file=sys.stderr)
        return 2
    except (StartFailed, ports.NoPort, embedded.EmbeddedError) as failure:
        print(f"The demo did not start: {failure}", file=sys.stderr)
        return 1
    except Stopped:
        return 130
    return 0


def _prepare(demo: Supervisor, run_dir: Path) -> None:
    web, sandbox = _ports()
    demo.address = f"http://localhost:{web}"
    demo.sandbox = f"http://127.0.0.1:{sandbox}"
    (run_dir / "demo").mkdir(exist_ok=True)
    for name, usual in _USUAL.items():
        demo.environment[name] = os.environ.get(name) or usual
    demo.environment |= {
        "AFTERSEND_ENV": "demo",
        "AFTERSEND_RUN_DIR": str(run_dir),
        "AFTERSEND_PORT": str(web),
        "AFTERSEND_SANDBOX_URL": demo.sandbox,
        "AFTERSEND_SANDBOX_TOKEN": kept_secrets(run_dir)["sandbox_token"],
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "PYTHONUNBUFFERED": "1",
    }
    if os.environ.get("DEMO_SECOND_FACTOR") == "1":
        demo.environment["AFTERSEND_SECOND_FACTOR"] = "on"


def _ports() -> tuple[int, int]:
    chosen: list[int] = []
    for variable, usual in (("AFTERSEND_PORT", WEB_PORT), ("AFTERSEND_SANDBOX_PORT", SANDBOX_PORT)):
        wanted = os.environ.get(variable, usual)
        port = ports.choose(variable, wanted, but=chosen[0] if chosen else None)
        if port != int(wanted):
            print(f"Port {wanted} is taken; using {port}. {variable} chooses another.")
        chosen.append(port)
    return chosen[0], chosen[1]


def _ensure_servers(demo: Supervisor, database: embedded.Postgres, bell: embedded.Valkey) -> None:
    """Ours where no address was given; the children get addresses either way and start none."""
    given = os.environ.get
    if not given("DATABASE_URL"):
        print(f"PostgreSQL lives under {database.folder}")
        demo.keep_server("postgres", database, lambda: database.ensure(DATABASE))
        demo.environment["DATABASE_URL"] = database.url(DATABASE)
    if not (given("CELERY_BROKER_URL") and given("CACHE_URL")):
        print(f"Valkey lives under {bell.folder}")
        demo.keep_server("valkey", bell, bell.ensure)
        demo.environment["CELERY_BROKER_URL"] = given("CELERY_BROKER_URL") or bell.url()
        demo.environment["CACHE_URL"] = given("CACHE_URL") or bell.cache_url()


def _start(demo: Supervisor) -> None:
    python = sys.executable
    demo.keep([_sandbox(demo)])
    demo.run("migrate", (python, "manage.py", "migrate", "--no-input"))
    demo.run("seed_demo", (python, "manage.py", "seed_demo"), shown=True)
    demo.keep([_web(demo), _workers(demo), _life()])


def _sandbox(demo: Supervisor) -> Child:
    port = demo.sandbox.rpartition(":")[2]
    command = [sys.executable, "-m", "sandbox", "--port", port]
    command += ["--book", str(demo.run_dir / "demo" / "book.sqlite")]
    command += ["--control-token", demo.environment["AFTERSEND_SANDBOX_TOKEN"]]
    return Child("sandbox", tuple(command), port=int(port), stops_last=True)


def _web(demo: Supervisor) -> Child:
    port = demo.environment["AFTERSEND_PORT"]
    command = [sys.executable, "-m", "uvicorn", "config.asgi:application"]
    command += ["--host", "127.0.0.1", "--port", port, "--timeout-graceful-shutdown", "5"]
    return Child("web", tuple(command), port=int(port), stop_seconds=10)


def _workers(demo: Supervisor) -> Child:
    """Money in children of its own, with time limits; lookups only read, threads will do."""
    quiet = "--without-gossip --without-mingle --loglevel INFO"
    schedule = shlex.quote(str(demo.run_dir / "beat-schedule"))
    programs = (
        f"money worker -Q money -n money@%h -P prefork -c 2 {quiet}",
        f"lookups worker -Q lookups -n lookups@%h -P threads -c 8 {quiet}",
        f"beat beat -S celery.beat:PersistentScheduler --loglevel INFO --schedule {schedule}",
    )
    command = [sys.executable, "-m", "config.workers"]
    command += [word for program in programs for word in ("--program", program)]
    return Child("workers", tuple(command), stop_seconds=workers.STOP_SECONDS + 5)


def _life() -> Child:
    return Child("demo_life", (sys.executable, "manage.py", "demo_life"))


if __name__ == "__main__":
    sys.exit(main())
