import contextlib
import gzip
import hashlib
import http.server
import io
import tarfile
import threading
import zipfile
from functools import partial
from http.client import RemoteDisconnected

import numpy as np
import pytest
import requests
from urllib3.exceptions import MaxRetryError, NameResolutionError, ProtocolError

from varclass.data import DataError, download
from varclass.data.archive import extract
from varclass.data.entry import Entry, Source
from varclass.data.getting import get, is_there

BODY = np.random.default_rng(0).bytes(300_000)
MD5 = "md5:" + hashlib.md5(BODY).hexdigest()


SIX, THREE = 6 * download.CHUNK, 3 * download.CHUNK


class Server(http.server.ThreadingHTTPServer):
    """A publisher with one file, who can be told to misbehave."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.body, self.tag, self.ranges = BODY, '"one"', True
        self.break_after = []  # bytes after which to hang up, for one request each
        self.requests, self.shift, self.status = [], 0, None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/file.bin"


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def do_GET(self):
        held, asked = self.server, self.headers.get("Range")
        held.requests.append(asked)
        if held.status:
            self.send_error(held.status)
            return
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and held.ranges else 0
        if self.headers.get("If-Range", held.tag) != held.tag:
            start, asked = 0, None
        if start >= len(held.body):
            self.send_error(416)
            return
        partial_answer = bool(asked and held.ranges)
        self.send_response(206 if partial_answer else 200)
        self.send_header("Content-Length", str(len(held.body) - start))
        if held.tag:
            self.send_header("ETag", held.tag)
        if partial_answer:
            self.send_header("Content-Range", f"bytes {start + held.shift}-{len(held.body) - 1}/{len(held.body)}")
        self.end_headers()
        cut = held.break_after.pop(0) if held.break_after else None
        with contextlib.suppress(OSError):
            self.wfile.write(held.body[start:] if cut is None else held.body[start:][:cut])
        self.close_connection = True


@pytest.fixture
def server():
    with Server() as held:
        thread = threading.Thread(target=held.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield held
        held.shutdown()
        thread.join()


@pytest.fixture
def bring(server, tmp_path):
    """Download the server's file and return its bytes."""

    def run(checksum=MD5, urls=None, report=lambda have, total: None):
        path = tmp_path / "folder" / "file.bin"
        download.download(urls or (server.url,), path, checksum, report)
        return path.read_bytes()

    return run


def left(tmp_path):
    return sorted(path.name for path in (tmp_path / "folder").iterdir())


def test_a_file_is_downloaded_once_and_its_progress_reported(server, bring, tmp_path):
    seen = []
    assert bring(report=lambda have, total: seen.append((have, total))) == BODY
    assert seen[-1] == (len(BODY), len(BODY))
    assert [have for have, _ in seen] == sorted(have for have, _ in seen)
    assert server.requests == [None]
    assert left(tmp_path) == ["file.bin"]


def test_an_old_file_gives_way_only_to_a_whole_new_one(server, bring, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file.bin").write_text("old")
    with pytest.raises(DataError, match="not the published file"):
        bring(checksum="md5:" + 32 * "0")
    assert (tmp_path / "folder" / "file.bin").read_text() == "old"
    server.status = 500
    with pytest.raises(DataError, match="500 Internal Server Error"):
        bring()
    assert left(tmp_path) == ["file.bin"]
    assert (tmp_path / "folder" / "file.bin").read_text() == "old"
    server.status = None
    assert bring() == BODY
    assert left(tmp_path) == ["file.bin"]


def test_a_broken_connection_is_taken_up_where_it_stopped(server, bring, tmp_path):
    server.break_after = [SIX, THREE + 5]
    assert bring() == BODY
    assert server.requests == [None, f"bytes={SIX}-", f"bytes={SIX + THREE}-"]
    assert left(tmp_path) == ["file.bin"]


def test_a_later_run_goes_on_from_the_part(server, bring, tmp_path):
    server.break_after = [SIX, 0]
    with pytest.raises(DataError, match=rf"file\.bin: could not be downloaded \({SIX} bytes are kept.*the connection broke"):
        bring()
    assert left(tmp_path) == ["file.bin.part", "file.bin.part.version"]
    assert bring() == BODY
    assert server.requests[-1] == f"bytes={SIX}-"
    assert left(tmp_path) == ["file.bin"]


def test_a_server_without_ranges_starts_anew(server, bring):
    server.ranges, server.break_after = False, [SIX]
    assert bring() == BODY
    assert server.requests == [None, f"bytes={SIX}-"]


def test_two_versions_of_a_file_are_never_joined(server, bring):
    server.break_after = [SIX, 0]
    with pytest.raises(DataError):
        bring(checksum=None)
    server.body, server.tag = BODY[::-1], '"two"'
    assert bring(checksum=None) == BODY[::-1]


def test_without_a_checksum_or_a_version_a_part_is_not_continued(server, bring):
    server.tag, server.break_after = None, [SIX, 0]
    with pytest.raises(DataError):
        bring(checksum=None)
    assert bring(checksum=None) == BODY
    assert server.requests[-1] is None


def test_a_range_that_is_another_than_asked_for_starts_anew(server, bring):
    server.break_after, server.shift = [SIX], 7
    assert bring() == BODY
    assert server.requests == [None, f"bytes={SIX}-", None]


def test_a_part_longer_than_the_file_starts_anew(server, bring, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file.bin.part").write_bytes(BODY + b"more")
    assert bring() == BODY
    assert server.requests == [f"bytes={len(BODY) + 4}-", None]


def test_a_wrong_checksum_is_refused_and_nothing_is_left(bring, tmp_path):
    with pytest.raises(DataError, match=r"file\.bin: what http.* is not the published file: expected md5:0000.*; deleted"):
        bring(checksum="md5:" + 32 * "0")
    assert list(tmp_path.iterdir()) == []


def test_a_mirror_stands_in_and_all_failures_are_told(server, bring):
    server.status = 404
    with pytest.raises(DataError, match=r"404 Not Found; http://127\.0\.0\.1:9/file\.bin: .*refused"):
        bring(urls=(server.url, "http://127.0.0.1:9/file.bin"))
    server.status = None
    assert bring(urls=("http://127.0.0.1:9/file.bin", server.url)) == BODY


def test_where_nothing_comes_no_folder_is_left(tmp_path):
    path = tmp_path / "root" / "MNIST" / "raw" / "file.bin"
    with pytest.raises(DataError, match="refused"):
        download.download(("http://127.0.0.1:9/x",), path, None, lambda have, total: None)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_there_stays(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="refused"):
        download.download(("http://127.0.0.1:9/x",), tmp_path / "folder" / "file.bin", None, lambda have, total: None)
    assert left(tmp_path) == []


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            requests.ConnectionError(
                MaxRetryError(None, "/x", NameResolutionError("h", "HTTP(host='h', port=80)", OSError(-2, "Not known")))
            ),
            "Failed to resolve 'h' ([Errno -2] Not known)",
        ),
        (
            requests.ReadTimeout("HTTP(host='h', port=80): Read timed out. (read timeout=60)"),
            "Read timed out. (read timeout=60)",
        ),
        (
            requests.ConnectionError(ProtocolError("Connection aborted.", RemoteDisconnected("Remote end closed connection"))),
            "Remote end closed connection",
        ),
    ],
)
def test_a_reason_is_the_innermost_one(error, expected):
    assert download._reason(error) == expected


def tar(members):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, raw in members.items():
            info = tarfile.TarInfo(name)
            if isinstance(raw, bytes):
                info.size = len(raw)
                archive.addfile(info, io.BytesIO(raw))
            else:
                info.type, info.linkname = tarfile.SYMTYPE, raw
                archive.addfile(info)
    return file.getvalue()


def zipped(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, raw in members.items():
            archive.writestr(name, raw)
    return file.getvalue()


@pytest.mark.parametrize(("name", "pack"), [("set.tar.gz", tar), ("set.zip", zipped)])
def test_archives_are_unpacked_into_their_folder(tmp_path, name, pack):
    (tmp_path / name).write_bytes(pack({"set/a/1.bin": b"one", "set/2.bin": b"two", "__MACOSX/x": b""} | {"top": b"3"}))
    (tmp_path / "to" / "set" / "a").mkdir(parents=True)
    (tmp_path / "to" / "set" / "a" / "own").write_text("kept")
    extract(tmp_path / name, tmp_path / "to")
    assert (tmp_path / "to" / "set" / "a" / "1.bin").read_bytes() == b"one"
    assert (tmp_path / "to" / "set" / "2.bin").read_bytes() == b"two"
    assert (tmp_path / "to" / "top").read_bytes() == b"3"
    assert (tmp_path / "to" / "set" / "a" / "own").read_text() == "kept"


@pytest.mark.parametrize("member", ["../out", "a/../../out", "/tmp/varclass-out", "C:/out", "..\\out"])
@pytest.mark.parametrize(("name", "pack"), [("set.tar.gz", tar), ("set.zip", zipped)])
def test_a_member_that_would_leave_the_folder_refuses_the_whole(tmp_path, name, pack, member):
    (tmp_path / name).write_bytes(pack({"fine": b"fine", member: b"evil"}))
    with pytest.raises(DataError, match="outside: nothing was extracted"):
        extract(tmp_path / name, tmp_path / "to" / "here")
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted([name, "here", "to"])


def test_links_and_damaged_archives_are_refused(tmp_path):
    (tmp_path / "link.tar.gz").write_bytes(tar({"fine": b"", "link": "/etc"}))
    with pytest.raises(DataError, match="'link' is a link"):
        extract(tmp_path / "link.tar.gz", tmp_path / "to")
    whole = tar({"one": BODY})
    for name, raw in [
        ("cut.tar.gz", whole[:-1000]),
        ("cut.zip", zipped({"one": BODY})[:-10]),
        ("changed.zip", zipped({"one": BODY}).replace(BODY[:9], b"otherwise")),
        ("text.tar.gz", b"no archive"),
        ("flipped.tar.gz", gzip.compress(b"x" * 2000)),
    ]:
        (tmp_path / name).write_bytes(raw)
        with pytest.raises(DataError, match=name):
            extract(tmp_path / name, tmp_path / "to")
    assert list((tmp_path / "to").iterdir()) == []


def entry_of(*sources):
    return Entry("set", "", "image", 2, {}, "", "", lambda paths, split: None, {}, sources)


def test_getting_downloads_checks_and_unpacks_what_is_not_there(server, tmp_path):
    server.body = tar({"deep/one.bin": b"1", "deep/two.bin": b"2"})
    digest = "md5:" + hashlib.md5(server.body).hexdigest()
    source = Source("set.tar.gz", (server.url,), len(server.body), digest, holds=("in/deep/one.bin",), into="in")
    entry = entry_of(source)
    assert get(entry, tmp_path) == {"set.tar.gz": "verified"}
    assert (tmp_path / "in" / "deep" / "two.bin").read_bytes() == b"2"
    assert not (tmp_path / "set.tar.gz").exists()
    assert get(entry, tmp_path) == {"set.tar.gz": "present"}
    assert len(server.requests) == 1
    assert get(entry, tmp_path, force=True) == {"set.tar.gz": "verified"}
    (tmp_path / "set.tar.gz").write_bytes(server.body)  # as an interrupted extraction leaves it
    (tmp_path / "in" / "deep" / "one.bin").unlink()
    assert get(entry, tmp_path) == {"set.tar.gz": "verified"}
    assert (tmp_path / "in" / "deep" / "one.bin").exists()
    assert len(server.requests) == 2
    absent = entry_of(Source("set.tar.gz", (server.url,), holds=("in/three.bin",), into="in"))
    with pytest.raises(DataError, match=r"expected it to hold in/three\.bin"):
        get(absent, tmp_path)


def test_a_file_that_has_changed_is_fetched_again_and_an_unpacked_or_repacked_one_is_not(server, tmp_path):
    server.body = gzip.compress(BODY, mtime=0)
    digest = "md5:" + hashlib.md5(server.body).hexdigest()
    source = Source("a/file.gz", (server.url,), None, digest, content=MD5)
    there = partial(is_there, entry_of(source), source, tmp_path)
    (tmp_path / "a").mkdir()
    for name, raw, expected in [
        ("file.gz", gzip.compress(BODY, compresslevel=1, mtime=5), True),
        ("file.gz", gzip.compress(BODY[:-1]), False),
        ("file.gz", server.body[:-9], False),
    ]:
        (tmp_path / "a" / name).write_bytes(raw)
        assert there() is expected
    assert get(entry_of(source), tmp_path) == {"a/file.gz": "verified"}
    (tmp_path / "a" / "file.gz").unlink()
    (tmp_path / "a" / "file").write_bytes(BODY)
    assert there()
    (tmp_path / "a" / "file").write_bytes(BODY[:-1])
    assert not there()
    assert get(entry_of(Source("b", (server.url,))), tmp_path) == {"b": "unverified"}
