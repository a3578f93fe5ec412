"""Checks the rebuilt cache reader and the move (mettlebench-canary-d530ff3224a51504b45f99ad9cc4244c)."""

from __future__ import annotations

import hashlib

from mettlebench.check import Grading, require

from build import (
    CACHE,
    CURRENT,
    LOST,
    ORIGINALS,
    THERE,
    Held,
    cache_files,
    make_cache,
    manifest,
    published,
    state,
)

TOOL = "tools/aci.py"


def in_order(held: list[Held]) -> list[Held]:
    return sorted(held, key=lambda each: (each.key.hex(), each.generation))


def listing(held: list[Held]) -> str:
    rows = [f"{e.key.hex()},{e.generation},{len(e.content)},{e.sha256}" for e in in_order(held)]
    return "".join(row + "\n" for row in ("key,generation,bytes,sha256", *rows))


def reader_is_rebuilt(work: Grading) -> None:
    scratch = work.scratch()
    require(scratch.is_file(TOOL), "there is no reader")
    for number in range(2):
        held = make_cache(90 + number, ["a/ä.css", "b.js", "c/d/e.svg"], ["f"] * number)
        held = [spoilt(each) if n == 2 else each for n, each in enumerate(held)]
        for name, data in cache_files(held).items():
            scratch.write(f"probe-{number}/{name}", data)
        said = scratch.run(["python3", "-I", TOOL, "list", f"probe-{number}"]).ok("listing a cache").text()
        require(said.replace("\r\n", "\n") == listing(held), "a cache is listed wrongly")
        for each in held[:4]:
            got = scratch.run(
                ["python3", "-I", TOOL, "get", f"probe-{number}", each.name, str(each.generation)]
            )
            if each.damaged:
                require(got.code == 1, "a damaged entry is handed out")
            else:
                require(got.code == 0 and got.stdout == each.content, "other content than was stored")
        best = max((each for each in held if each.name == "b.js"), key=lambda each: each.generation)
        got = scratch.run(["python3", "-I", TOOL, "get", f"probe-{number}", "b.js"])
        want = (1, b"") if best.damaged else (0, best.content)
        require((got.code, got.stdout) == want, "without a generation, another one than the highest is taken")
        got = scratch.run(["python3", "-I", TOOL, "get", f"probe-{number}", "nowhere"])
        require(got.code == 1 and got.stdout == b"" and got.stderr, "an unknown name is not told")


def spoilt(each: Held) -> Held:
    return Held(
        name=each.name,
        generation=each.generation,
        content=each.content,
        method=each.method,
        pack=each.pack,
        damaged=True,
    )


def inventory_is_complete(work: Grading) -> None:
    columns = ("key", "generation", "bytes", "sha256", "name", "state")
    found = [tuple(row.values()) for row in work.csv("records/inventory.csv", columns)]
    expected = [
        (
            each.key.hex(),
            str(each.generation),
            str(len(each.content)),
            each.sha256,
            each.name if each.name in CURRENT else "",
            state(each),
        )
        for each in in_order(CACHE)
    ]
    require(found == expected, f"{len(found)} entries, {len(expected)} were there, or other values")


def originals_are_back(work: Grading) -> None:
    for name in LOST:
        require(work.read(f"assets/{name}") == ORIGINALS[name], f"{name} has other content")


def restoring_is_recorded(work: Grading) -> None:
    rows = work.csv("records/restored.csv", ("name", "generation", "sha256"))
    expected = [(name, str(CURRENT[name].generation), CURRENT[name].sha256) for name in LOST]
    require([tuple(row.values()) for row in rows] == expected, f"{len(rows)} rows, or other values")
    for name, data in THERE.items():
        require(work.read(f"assets/{name}") == data, f"{name} was changed")
    present = work.files("assets")
    require(present == sorted(f"assets/{name}" for name in ORIGINALS), "other assets than there should be")


def everything_is_published(work: Grading) -> None:
    require(work.read("tools/pipeline.py") == work.shipped("tools/pipeline.py"), "the pipeline was changed")
    require(work.read("public/manifest.json") == manifest(), "the manifest is another")
    for name, data in ORIGINALS.items():
        require(work.read(f"public/{name}") == published(data), f"{name} is published otherwise")
    present = work.files("public")
    expected = sorted(["public/manifest.json", *(f"public/{name}" for name in ORIGINALS)])
    require(present == expected, "other files than there should be are published")


def cache_is_new(work: Grading) -> None:
    names = {hashlib.sha256(data).hexdigest() for data in ORIGINALS.values()}
    present = {name.removeprefix(".cache/") for name in work.files(".cache")}
    require(present == names | {"VERSION"}, "the cache holds other entries than a complete build leaves")
    require(work.text(".cache/VERSION").strip() == "3", "the cache has another version")
    files = {name for name in work.files() if "__pycache__" not in name}
    files -= {n for n in files if n.startswith((".cache/", "assets/", "public/", "docs/"))}
    known = {"assets.csv", TOOL, "tools/pipeline.py"}
    known |= {f"records/{name}" for name in ("inventory.csv", "restored.csv", "report.md")}
    require(files <= known, f"not asked for: {', '.join(sorted(files - known))}")


def report_is_complete(work: Grading) -> None:
    words = {word.strip(".,;:()`*|") for word in work.text("records/report.md").split()}
    states = [state(each) for each in CACHE]
    wanted = [str(len(CACHE)), str(states.count("orphan")), str(states.count("damaged")), str(len(LOST))]
    wanted += [work.sha256("records/inventory.csv"), work.sha256("public/manifest.json")]
    missing = [value for value in wanted if value not in words]
    require(not missing, f"not quoted: {', '.join(missing)}")


CHECKS = {
    "C01": reader_is_rebuilt,
    "C02": inventory_is_complete,
    "C03": originals_are_back,
    "C04": restoring_is_recorded,
    "C05": everything_is_published,
    "C06": cache_is_new,
    "C07": report_is_complete,
}
