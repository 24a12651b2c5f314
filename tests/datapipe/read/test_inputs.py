from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from datapipe.errors import FailedError, InputError
from datapipe.read import (
    InputFile,
    detect_format,
    ensure_distinct,
    input_sha256,
    list_inputs,
    plan_ranges,
    read_range,
)

Listed = tuple[list[str], list[str]]
"""Relative names and notes."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in [
        "a.jsonl",
        "b/a.jsonl",
        "b/c/d.jsonl.gz",
        "b/e.txt",
        ".hidden.jsonl",
        ".git/config",
        "b/.x",
        "part-0/x.jsonl",
        "part-1/x.jsonl",
        "we[ird].jsonl",
    ]:
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * len(name))
    return tmp_path / "in"


ALL = [
    "a.jsonl",
    "b/a.jsonl",
    "b/c/d.jsonl.gz",
    "b/e.txt",
    "part-0/x.jsonl",
    "part-1/x.jsonl",
    "we[ird].jsonl",
]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["."], ALL),
        (["a.jsonl"], ["a.jsonl"]),
        (["b/a.jsonl"], ["a.jsonl"]),
        (["a.jsonl", "b/a.jsonl"], ["a.jsonl", "b/a.jsonl"]),
        (["b", "a.jsonl"], ["a.jsonl", "b/a.jsonl", "b/c/d.jsonl.gz", "b/e.txt"]),
        (["*.jsonl"], ["a.jsonl", "we[ird].jsonl"]),
        (["b/*.jsonl", "b/*.txt"], ["a.jsonl", "e.txt"]),
        (["**/*.jsonl"], [name for name in ALL if name.endswith(".jsonl")]),
        (["b/**/d.*"], ["c/d.jsonl.gz"]),
        (["**"], ALL),
        (["part-*"], ["part-0/x.jsonl", "part-1/x.jsonl"]),
        (["part-[1-9]/*"], ["part-1/x.jsonl"]),
        (["*/?.jsonl"], ["b/a.jsonl", "part-0/x.jsonl", "part-1/x.jsonl"]),
        (["we[ird].jsonl"], ["we[ird].jsonl"]),
        ([".hidden.jsonl"], [".hidden.jsonl"]),
        ([".git"], ["config"]),
        ([".h*"], [".hidden.jsonl"]),
        (["b/../b/a.jsonl"], ["a.jsonl"]),
    ],
    ids=str,
)
def test_paths_folders_and_patterns_name_files(
    tree: Path, monkeypatch: pytest.MonkeyPatch, paths: list[str], expected: list[str]
) -> None:
    monkeypatch.chdir(tree)
    relative = [file.relative for file in list_inputs(paths)]
    absolute = [file.relative for file in list_inputs([f"{tree}/{path}" for path in paths])]
    assert relative == absolute == expected


def test_a_file_says_where_it_is_how_large_and_whether_it_was_named(tree: Path) -> None:
    path = tree / "a.jsonl"
    status = path.stat()
    assert list_inputs([path]) == [
        InputFile(
            path=str(path),
            relative="a.jsonl",
            size_bytes=7,
            modified_ns=status.st_mtime_ns,
            changed_ns=status.st_ctime_ns,
            identity=(status.st_dev, status.st_ino),
            given=str(path),
            named=True,
        )
    ]
    assert not any(
        file.named
        for file in list_inputs(
            [
                tree,
            ]
        )
    )
    (by_url,) = list_inputs([path.as_uri()])
    assert (by_url.path, by_url.named) == (str(path), True)


def test_names_are_relative_to_the_root_that_is_given(tree: Path) -> None:
    (file,) = list_inputs([tree / "b" / "a.jsonl"], root=tree.parent)
    assert file.relative == "in/b/a.jsonl"
    with pytest.raises(InputError, match=r"a\.jsonl doesn't lie below the root .*/b; change"):
        list_inputs([tree / "a.jsonl"], root=tree / "b")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere.jsonl", r"nowhere\.jsonl doesn't exist; check the path"),
        ("*.parquet", r"\*\.parquet matches no file; check the path"),
        ("empty", r"empty holds no file that isn't hidden; check the path"),
        ("s3://k:secret@bucket/x", "s3://bucket/x was given with a password or token"),
        ("foo://k:secret@bucket/x?y", "foo://bucket/x was given with a password"),
        ("simplecache::s3://k:secret@b/x", "simplecache::s3://b/x was given with a pass"),
        ("https:/k:secret@b/*.jsonl", r"begins with https: .* meant as https://b/\*.jsonl"),
        ("foo:/k:secret@b/x", "begins with foo: .* meant as foo://b/x"),
        ("file:///secret/a?token=b", "file:///secret/a isn't the URL of a file"),
        ("", "'' isn't a path"),
    ],
)
def test_a_path_that_means_nothing_is_an_error(
    tree: Path, monkeypatch: pytest.MonkeyPatch, path: str, message: str
) -> None:
    monkeypatch.chdir(tree)
    Path("empty").mkdir()
    with pytest.raises(InputError, match=message):
        list_inputs([path])


def test_no_paths_are_an_error() -> None:
    with pytest.raises(InputError, match="no input path is given"):
        list_inputs([])


def test_a_file_given_twice_is_an_error_naming_both_givers(tree: Path) -> None:
    with pytest.raises(InputError, match=r"a\.jsonl is given twice, by \S+/in and by \S+/a\.jsonl"):
        list_inputs([tree, tree / "a.jsonl"])


def test_two_files_of_one_name_in_a_source_are_an_error_naming_both(tree: Path) -> None:
    files = list_inputs([tree / "part-0"]) + list_inputs([tree / "part-1"])
    with pytest.raises(
        InputError, match=r"part-0/x\.jsonl and \S+part-1/x\.jsonl have the same na"
    ):
        ensure_distinct(files)


def test_links_are_followed_and_cycles_end(tree: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "far.jsonl").write_bytes(b"")
    (tmp_path / "near.jsonl").write_bytes(b"")
    (tree / "b" / "file.jsonl").symlink_to(tmp_path / "near.jsonl")
    (tree / "b" / "folder").symlink_to(other)
    (tree / "b" / "up").symlink_to(tree)
    (tree / "b" / "self").symlink_to(tree / "b")
    names = [file.relative for file in list_inputs([tree / "b"])]
    assert {"file.jsonl", "folder/far.jsonl"} < set(names)
    assert not [name for name in names if name.startswith("self/")]
    assert "up/a.jsonl" in names
    assert not [name for name in names if name.startswith("up/b/")]


def test_a_broken_link_is_an_error(tree: Path) -> None:
    (tree / "b" / "gone").symlink_to(tree / "nowhere")
    with pytest.raises(InputError, match="gone is a broken link"):
        list_inputs([tree])


def listed(*paths: Path, own: Sequence[Path] = (), root: Path | None = None) -> Listed:
    notes: list[str] = []
    files = list_inputs(paths, root=root, own=[str(path) for path in own], note=notes.append)
    return [file.relative for file in files], notes


def test_what_the_program_writes_is_left_out_and_said(tree: Path) -> None:
    (tree / "out" / "_work").mkdir(parents=True)
    (tree / "out" / "format.json").write_bytes(b"{}")
    (tree / "work").mkdir()
    (tree / "work" / "piece").write_bytes(b"")
    own = [tree / "out", tree / "work", tree / "not there"]
    (tree / "b" / "into").symlink_to(tree / "out" / "_work")
    (tree / "b" / "format").symlink_to(tree / "out" / "format.json")
    names, notes = listed(tree, own=own)
    assert names == ALL
    assert [note for note in notes if note.endswith(": the program writes to it")] == notes
    assert [Path(note.split(" was left out")[0]).name for note in notes] == [
        "format", "out", "work", "into"
    ]  # fmt: skip
    assert listed(tree / "**" / "*", own=own)[0] == ALL
    with pytest.raises(InputError, match=r"matches no file; left out: \S+/in/out \(the program wr"):
        listed(tree / "out*" / "format*", own=own)


@pytest.mark.parametrize("name", ["out", "out/deep", "out/deep/x.jsonl", "link", "out/*", "outer"])
def test_a_path_that_the_program_writes_to_is_refused(tree: Path, name: str) -> None:
    (tree / "out" / "deep").mkdir(parents=True)
    (tree / "out" / "deep" / "x.jsonl").write_bytes(b"")
    (tree / "link").symlink_to(tree / "out" / "deep")
    (tree / "outer").symlink_to(tree / "out")
    with pytest.raises(InputError, match=r"is, or lies in, a folder that this command writes to"):
        listed(tree / name, own=[tree / "out"])


def test_another_dataset_is_left_out_of_a_folder_and_refused_by_name(tree: Path) -> None:
    (tree / "ds" / "_log").mkdir(parents=True)
    (tree / "ds" / "format.json").write_bytes(b"{}")
    assert listed(tree) == (ALL, [f"{tree}/ds was left out of the inputs: it is a dataset"])
    with pytest.raises(InputError, match="ds is a dataset, not raw data: it holds"):
        listed(tree / "ds")
    with pytest.raises(InputError, match=r"matches no file; left out: \S+/ds \(it is a dataset\)"):
        listed(tree / "ds" / "*")


def test_a_folder_with_several_names_is_read_once_under_its_own(tree: Path) -> None:
    (tree / "a-link").symlink_to(tree / "b")
    (tree / "c-link").symlink_to(tree / "b")
    names, notes = listed(tree)
    assert names == ALL
    (note,) = notes
    assert note.startswith(f"{tree}/a-link is {tree}/b under another name, and 1 more such")


def test_folders_that_link_to_each_other_in_many_ways_end(tmp_path: Path) -> None:
    for level in range(40):
        (tmp_path / f"{level}").mkdir()
        for name in "xyz":
            (tmp_path / f"{level}" / name).symlink_to(tmp_path / f"{level + 1}")
    (tmp_path / "40").mkdir()
    (tmp_path / "40" / "a.txt").write_bytes(b"")
    assert listed(tmp_path / "0")[0] == ["/".join(["x"] * 40) + "/a.txt"]


@pytest.mark.parametrize("hard", [True, False], ids=["hard link", "link"])
def test_a_file_with_several_names_is_read_once(tree: Path, hard: bool) -> None:
    for name in ("0.jsonl", "z.jsonl"):
        if hard:
            (tree / name).hardlink_to(tree / "a.jsonl")
        else:
            (tree / name).symlink_to(tree / "a.jsonl")
    names, notes = listed(tree)
    first = "0.jsonl" if hard else "a.jsonl"
    assert names == sorted([first, *ALL[1:]])
    (note,) = notes
    assert f"is {tree}/{first} under another name; each was read once" in note


def test_one_file_through_two_paths_is_refused(tree: Path) -> None:
    (tree / "again.jsonl").hardlink_to(tree / "a.jsonl")
    with pytest.raises(InputError, match=r"a\.jsonl and \S+again\.jsonl are the same file, thr"):
        listed(tree / "a.jsonl", tree / "again.jsonl")
    with pytest.raises(InputError, match=r"d\.jsonl\.gz is given twice, by \S+/b and by \S+/c;"):
        listed(tree / "b", tree / "b" / "c")


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """1,500 folders, one in the other; taken apart again, which pytest can't."""
    folders = [tmp_path / ("d/" * depth) for depth in range(1, 1_501)]
    for folder in folders:
        folder.mkdir()
    (folders[-1] / "a.txt").write_bytes(b"")
    yield tmp_path
    (folders[-1] / "a.txt").unlink()
    for folder in reversed(folders):
        folder.rmdir()


def test_folders_nested_beyond_any_recursion_are_walked(deep: Path) -> None:
    assert listed(deep)[0] == ["d/" * 1_500 + "a.txt"]
    assert listed(deep / "**" / "*.txt")[0] == ["d/" * 1_500 + "a.txt"]


@pytest.mark.parametrize("name", ["loop", "loop/x", "*", "."])
def test_a_link_to_itself_is_refused(tree: Path, name: str) -> None:
    (tree / "loop").symlink_to("loop")
    with pytest.raises(InputError, match=r"loop\S* is a link that leads back to itself"):
        listed(tree / name)


@pytest.mark.parametrize("name", ["a.jsonl", "nowhere"])
def test_a_root_that_isnt_a_folder_is_refused(tree: Path, name: str) -> None:
    with pytest.raises(InputError, match=rf"the root \S+/{name} isn't a folder"):
        listed(tree / "a.jsonl", root=tree / name)


def test_a_file_replaced_under_the_same_size_and_time_is_noticed(tree: Path) -> None:
    path = tree / "a.jsonl"
    (file,) = list_inputs([path])
    status = path.stat()
    path.write_bytes(b"another"[:7])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(FailedError, match=r"a\.jsonl was changed or replaced after it was listed"):
        input_sha256(file)


def test_a_pipe_is_left_out_of_a_folder_and_refused_by_name(tree: Path) -> None:
    os.mkfifo(tree / "b" / "pipe")
    assert "b/pipe" not in [file.relative for file in list_inputs([tree])]
    with pytest.raises(InputError, match="pipe isn't a regular file"):
        list_inputs([tree / "b" / "pipe"])


def test_a_name_that_isnt_utf8_is_an_error(tree: Path) -> None:
    Path(os.fsdecode(bytes(tree / "b") + b"/caf\xe9.txt")).write_bytes(b"")
    with pytest.raises(InputError, match=r"caf\\xe9\.txt' isn't UTF-8"):
        list_inputs([tree])


@pytest.fixture
def locked(tree: Path) -> Iterator[Path]:
    """A folder that this process may not enter; root gives up its rights meanwhile."""
    user = os.geteuid()
    (tree / "b").chmod(0)
    if user == 0:
        os.seteuid(65534)
    yield tree / "b"
    os.seteuid(user)
    (tree / "b").chmod(0o700)


@pytest.mark.parametrize("name", [".", "a.jsonl", "*.jsonl"])
def test_a_path_without_permission_fails_by_name(locked: Path, name: str) -> None:
    with pytest.raises(FailedError, match=r"in/b\S* can't be (read|listed): Permission denied"):
        list_inputs([locked / name])


def test_a_file_without_permission_fails_by_name(
    tree: Path, request: pytest.FixtureRequest
) -> None:
    files = list_inputs([tree / "b"])
    request.getfixturevalue("locked")
    with pytest.raises(FailedError, match=r"in/b/a\.jsonl can't be read: permission denied"):
        detect_format(files[0])


def test_a_file_that_vanishes_or_changes_fails_by_name(tree: Path) -> None:
    (file,) = list_inputs([tree / "a.jsonl"])
    (part,) = plan_ranges(file, detect_format(file), target_bytes=100)
    (tree / "a.jsonl").write_bytes(b"other")
    with pytest.raises(FailedError, match=r"a\.jsonl had 7 bytes when it was listed and has 5 now"):
        list(read_range(part, source="s"))
    (tree / "a.jsonl").unlink()
    with pytest.raises(FailedError, match=r"a\.jsonl can't be read: it is gone"):
        list(read_range(part, source="s"))


def test_the_digest_of_an_input_is_that_of_its_bytes(tree: Path) -> None:
    (tree / "a.jsonl").write_bytes(b"abc")
    (file,) = list_inputs([tree / "a.jsonl"])
    assert input_sha256(file).hex().startswith("ba7816bf8f01cfea414140de5dae2223")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        (
            "a.zip",
            b"PK\x03\x04",
            "is a ZIP archive, which this version can't read; known formats: J",
        ),
        (
            "a.png",
            b"\x89PNG\r\n\x1a\n\0\0",
            "is binary data of an unknown format, which this version",
        ),
    ],
)
def test_a_named_file_of_an_unknown_format_is_an_error(
    tmp_path: Path, name: str, data: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(data)
    (file,) = list_inputs([tmp_path / name])
    with pytest.raises(InputError, match=message):
        detect_format(file)


def test_an_unknown_declared_format_is_an_error(tree: Path) -> None:
    (file,) = list_inputs([tree / "a.jsonl"])
    with pytest.raises(InputError, match="'orc' is unknown; known: jsonl, json, csv"):
        detect_format(file, declared="orc")
