import re
from pathlib import Path

import pytest

from varclass.data.catalogue import CATALOGUE
from varclass.data.split import KINDS

ENTRIES = [pytest.param(entry, id=name) for name, entry in CATALOGUE.items()]


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_entry_is_complete_and_consistent(entry):
    assert re.fullmatch(r"[a-z0-9_]+", entry.name)
    assert CATALOGUE[entry.name] is entry
    assert len(entry.about) > 10
    assert entry.license
    assert entry.homepage.startswith("http")
    assert entry.kind in KINDS
    assert entry.num_classes >= 2
    assert {"train", "test"} <= set(entry.samples)
    assert set(entry.samples) == set(entry.files)
    assert all(count > 0 for count in entry.samples.values())
    assert callable(entry.read)


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_file_that_is_read_comes_from_a_source(entry):
    wanted = {file for files in entry.files.values() for file in files}
    published = {file for source in entry.sources for file in source.files}
    assert wanted <= published
    assert set(entry.instead) <= wanted


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_source_has_an_address_and_a_checksum_of_the_right_form(entry):
    assert bool(entry.sources) == (entry.name != "digits")
    assert len({source.path for source in entry.sources}) == len(entry.sources)
    for source in entry.sources:
        assert source.urls
        assert all(re.match(r"https?://\S+$", url) for url in source.urls)
        assert source.size is None or source.size > 1000
        for checksum in (source.checksum, source.content):
            assert checksum is None or re.fullmatch(r"md5:[0-9a-f]{32}|sha256:[0-9a-f]{64}", checksum)
        for file in (source.path, *source.holds):
            assert not Path(file).is_absolute()
            assert ".." not in Path(file).parts
        assert bool(source.holds) == source.path.endswith((".tar.gz", ".zip"))
        assert all(file.startswith(source.into) for file in source.holds)


def test_no_two_files_share_a_checksum_or_a_place():
    assert CATALOGUE["nli_dev"].sources is CATALOGUE["nli"].sources  # the same downloads, read in another way
    sources = [source for entry in CATALOGUE.values() if entry.name != "nli_dev" for source in entry.sources]
    checksums = [source.checksum for source in sources if source.checksum]
    assert len(set(checksums)) == len(checksums)
    assert len({source.path for source in sources}) == len(sources)


def test_only_the_sets_known_to_have_no_published_checksum_are_unverified():
    unverified = {entry.name for entry in CATALOGUE.values() for source in entry.sources if source.checksum is None}
    assert unverified == {"camelyon17"}
