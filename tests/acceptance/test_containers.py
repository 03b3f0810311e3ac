"""The containers, as far as that goes without an engine: their files, and what they run, with their users and roles."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import typer
import yaml
from psycopg.conninfo import conninfo_to_dict

from memstore.cli import app
from memstore.settings import Settings
from memstore.store.embedded.folder import Account
from memstore.store.embedded.programs import executable
from memstore.store.embedded.server import EmbeddedServer
from tests.command_line import SCRIPT, environment
from tests.conftest import with_database

ROOT = Path(__file__).parents[2]
DOCKER, CHART = ROOT / "docker", ROOT / "deploy" / "helm" / "memstore"
COMPOSE = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if service["image"] == "memstore"]
DOCKERFILE = re.sub(r"\\\n\s*", "", (DOCKER / "Dockerfile").read_text()).split("\nFROM ")[-1]
SECRETS = {"OWNER_PASSWORD": "o'wner", "SERVER_PASSWORD": 'ser"ver', "POSTGRES_PASSWORD": "postgres"}


def instruction(name: str) -> str:
    (found,) = re.findall(rf"^{name} (.+)$", DOCKERFILE, re.MULTILINE)
    return str(found)


def commands(service: dict[str, Any]) -> list[list[str]]:
    """Give the command lines of a service; one without any has the image's."""
    given = service.get("command", json.loads(instruction("CMD")))
    return [shlex.split(one)[1:] for one in given[0].split("&&")] if "entrypoint" in service else [given]


def variables(service: dict[str, Any], **places: str) -> dict[str, str]:
    """Give a service's variables and the image's, with secrets filled in, and the defaults of others."""
    image = dict(one.split("=", 1) for one in shlex.split(instruction("ENV")) if not one.startswith("PATH="))
    text = json.dumps(service["environment"])
    text = re.sub(r"\$\{(\w+):[?-]([^}]*)\}", lambda m: json.dumps(SECRETS.get(m[1], m[2]))[1:-1], text)
    return image | json.loads(text) | places


def check_command(line: list[str]) -> None:
    group, rest = typer.main.get_command(app), line
    while isinstance(group, typer.core.TyperGroup):
        _, command, rest = group.resolve_command(typer.Context(group), rest)
        assert command is not None, line
        group = command  # type: ignore[assignment]
    group.make_context(line[0], list(rest))


def check_settings(names: Iterable[str]) -> None:
    own = {name.removeprefix("MEMSTORE_").lower() for name in names if name.startswith("MEMSTORE_")}
    assert own - {"config"} <= set(Settings.model_fields)


def test_services_run_commands_with_settings_that_there_are() -> None:
    assert OURS == ["schema", "worker", "server"]
    for name in OURS:
        check_settings(variables(SERVICES[name]))
        checked = SERVICES[name].get("healthcheck", {}).get("test", [])
        for line in [*commands(SERVICES[name]), *([checked[2:]] if checked else [])]:
            check_command(line)


def test_nobody_is_root_or_open_to_others_and_no_version_floats() -> None:
    assert instruction("USER") == "10001"
    for name, service in SERVICES.items():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name
        assert name in OURS or re.search(r":\d+\.\d+", service["image"]), name
        assert "healthcheck" in service or name == "server"  # which has the image's
    for name in OURS:
        assert (SERVICES[name]["read_only"], SERVICES[name]["cap_drop"]) == (True, ["ALL"]), name


def rendered(*options: str) -> subprocess.CompletedProcess[str]:
    command = ["helm", "template", "prod", str(CHART), *options]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.skipif(shutil.which("helm") is None, reason="no helm here")
def test_the_chart_runs_what_compose_runs_and_nobody_is_root() -> None:
    urls = [f"--set=database.{login}Url=postgresql://{login}:p@db/memstore" for login in ("owner", "server")]
    assert subprocess.run(["helm", "lint", "--strict", str(CHART), *urls], capture_output=True).returncode == 0
    assert "Give database.ownerUrl" in rendered().stderr
    assert "additional properties 'wokrer'" in rendered(*urls, "--set=wokrer.replicas=2").stderr
    assert not [
        one
        for one in yaml.safe_load_all(rendered("--set=database.existingSecret=mine").stdout)
        if one["kind"] == "Secret"
    ]
    made = rendered(*urls, "--set=server.hosts={a.example,b.example}", "--set=env.MEMSTORE_FACTS_MODEL=none")
    resources = list(yaml.safe_load_all(made.stdout))
    pods = {
        one["metadata"]["labels"]["app.kubernetes.io/component"]: one["spec"]["template"]["spec"]
        for one in resources
        if one["kind"] in ("Deployment", "Job")
    }
    (secret,) = (one for one in resources if one["kind"] == "Secret")
    assert set(pods) == {"server", "worker", "migration"}
    for component, pod in pods.items():
        (container,) = pod["containers"]
        assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 10001)
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        check_settings(one["name"] for one in container["env"])
        for key in (one["valueFrom"]["secretKeyRef"] for one in container["env"] if "valueFrom" in one):
            login = "server" if component == "server" else "owner"
            assert (key["name"], key["key"]) == (secret["metadata"]["name"], f"{login}-url")
            assert secret["stringData"][key["key"]] == f"postgresql://{login}:p@db/memstore"
    line = pods["migration"]["containers"][0]["args"][0].replace("$SERVER_LOGIN", "server")
    assert [shlex.split(one)[1:] for one in line.split("&&")] == commands(SERVICES["schema"])
    for component in ("server", "worker"):
        assert [pods[component]["containers"][0]["args"]] == commands(SERVICES[component])
    server = pods["server"]["containers"][0]
    assert {"name": "MEMSTORE_SERVER_HOSTS", "value": "a.example,b.example"} in server["env"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):  # other hosts are refused
        assert server[probe]["httpGet"]["httpHeaders"] == [{"name": "Host", "value": "localhost"}]


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A new server on which the script of the database's container ran; the variables that lead there."""
    folder = tmp_path_factory.mktemp("postgres")
    server = EmbeddedServer.open(folder / "store")
    with psycopg.connect(with_database(server.url, "postgres"), autocommit=True) as connection:
        connection.execute("DROP DATABASE memstore")  # the container's server is new, this one has that already
    given = conninfo_to_dict(server.url)
    run = Path(str(given["host"]))
    for one in (run, *run.parents[:-2]):  # an embedded server is its owner's alone, and who asks here is another user
        one.chmod(0o711)
    next(run.glob(".s.PGSQL.*[0-9]")).chmod(0o777)
    there = {"PGHOST": str(given["host"]), **({"PGPORT": str(given["port"])} if "port" in given else {})}
    path = f"{Path(executable(['psql'], Account.of(folder))[0]).parent}:{os.environ['PATH']}"
    env = environment(**SECRETS, **there, PATH=path, POSTGRES_USER=str(given["user"]))
    ran = subprocess.run([DOCKER / "postgres" / "10-memstore.sh"], env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    yield there
    server.close()


@contextmanager
def running(line: list[str], env: dict[str, str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a command as the image's user would, with a home of its own."""
    home = folder / line[0]
    home.mkdir(exist_ok=True)
    as_user = ["setpriv", "--reuid", "10001", "--regid", "10001", "--clear-groups"] if os.geteuid() == 0 else []
    if as_user:
        os.chown(home, 10001, 10001)
    process = subprocess.Popen(
        [*as_user, str(SCRIPT), *line],
        env=environment(**env, HOME=str(home)),
        cwd=home,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        _, told = process.communicate(timeout=60)
        sys.stderr.write(told)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return int(bound.getsockname()[1])


@pytest.mark.slow
def test_what_the_services_run_serves_and_derives(postgres: dict[str, str], tmp_path: Path) -> None:
    if os.geteuid() == 0 and (barrier := Account(10001, 10001).find_barrier(Path(sys.prefix))):
        pytest.skip(f"the image's account cannot enter {barrier}")
    tmp_path.chmod(0o755)
    place = {"MEMSTORE_CONFIG": "", "MEMSTORE_EMBEDDER": "none", **postgres}

    def env_of(name: str) -> dict[str, str]:
        env = variables(SERVICES[name]) | place
        return env | {"MEMSTORE_DATABASE_URL": env["MEMSTORE_DATABASE_URL"].replace("@postgres", "@")}

    def ended(line: list[str], name: str) -> None:
        with running(line, env_of(name), tmp_path) as process:
            assert process.wait(60) == 0, line

    for line in commands(SERVICES["schema"]):
        ended(line, "schema")
    made = subprocess.run(
        [SCRIPT, "token", "create", "--user", "alice"],
        env=environment(**env_of("server")),
        capture_output=True,
        text=True,
    )
    bearer, port = {"Authorization": f"Bearer {made.stdout.strip()}"}, str(free_port())
    (serve,), (work,) = commands(SERVICES["server"]), commands(SERVICES["worker"])
    check = json.loads(instruction("HEALTHCHECK").partition("CMD ")[2])[1:]
    with (
        running([*serve, "--port", port], env_of("server"), tmp_path) as server,
        running(work, env_of("worker"), tmp_path) as worker,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=bearer, timeout=30) as client,
    ):
        healthy = [sys.executable, *[one.replace(":8377/", f":{port}/") for one in check]]
        until = time.monotonic() + 60
        while subprocess.run(healthy, capture_output=True).returncode and time.monotonic() < until:
            time.sleep(0.2)
        talk = "/v1/users/alice/conversations/talk"
        body = {"messages": [{"role": "user", "content": "I'm allergic to peanuts."}]}
        assert client.post(f"{talk}/messages", json=body).status_code == 201
        while not (facts := client.get("/v1/users/alice/facts").json()["items"]) and time.monotonic() < until:
            time.sleep(0.2)
        assert "peanuts" in facts[0]["text"]
        ended(SERVICES["worker"]["healthcheck"]["test"][2:], "worker")
        for process in (server, worker):
            process.terminate()
            assert process.wait(60) == 0
