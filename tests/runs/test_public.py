"""Public tables by name: fetched once from their origin, checked, and named with licence and citation.

The origin is played by a server on this machine that has the originals at the addresses of their commits.
"""

import gzip
import logging
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pandas as pd
import pytest

import bayescale as bs
from bayescale.runs import public

CHINCHILLA = "epoch-research/analyzing-chinchilla/92258837425e1b5f2851d624287f0120583a3d0e/data/svg_extracted_data.csv"
CLARK = "google-deepmind/scaling_laws_for_routing/42da0c392b127df2c01fa7b705f72396050d05e5/data/curves.csv.gz"
NAMES = ["chinchilla-epoch", "clark-2022-routing"]


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder, counts what is asked of it, prints nothing."""

    asked: list[str]

    def do_GET(self):
        self.asked.append(self.path)
        super().do_GET()

    def log_message(self, format, *args):
        pass


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache folder of this test's own."""
    monkeypatch.setattr(public.platformdirs, "user_cache_dir", lambda name: str(tmp_path / "cache" / name))
    return tmp_path / "cache" / "bayescale" / "public"


@pytest.fixture
def served(tmp_path, monkeypatch):
    """The folder that the origin serves, and what was asked of it."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = type("Handler", (Quiet,), {"asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setattr(public, "ORIGIN", f"http://127.0.0.1:{server.server_address[1]}")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield folder, handler.asked
        server.shutdown()
        thread.join()


@pytest.fixture
def originals(served, shared):
    """The untouched originals, at their addresses."""
    folder, asked = served
    for address, original in (
        (CHINCHILLA, "chinchilla-epoch/svg_extracted_data.csv"),
        (CLARK, "clark-2022-routing/curves.csv.gz"),
    ):
        (folder / address).parent.mkdir(parents=True)
        shutil.copy(shared / "data" / original, folder / address)
    return asked


@pytest.fixture
def no_network(monkeypatch):
    """An origin where nobody answers."""
    monkeypatch.setattr(public, "ORIGIN", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def test_the_runs_of_chinchilla(originals, cache):
    runs = bs.public.load("chinchilla-epoch")
    assert len(runs) == 245
    assert runs.largest["flop"] == pytest.approx(1.3e22, rel=0.005)
    assert runs.source.endswith(CHINCHILLA)


def test_the_runs_of_clark_are_last_checkpoints(originals, cache, shared):
    runs = bs.public.load("clark-2022-routing")
    by_hand = pd.read_csv(shared / "data/clark-2022-routing/runs.csv").set_index("run_id")
    assert len(runs) == len(by_hand) == 223
    found = runs.table.set_index("run").loc[by_hand.index]
    for name, theirs in {
        "n_params": "n_params_dense",
        "loss": "loss",
        "n_tokens": "n_tokens_if_524288_per_step",
        "step": "step",
    }.items():
        assert found[name].to_numpy(float) == pytest.approx(by_hand[theirs].to_numpy(float), rel=1e-6), name
    assert runs.labels("router_type")[1] == ("Dense", "Hash", "RL-R", "S-Base")


@pytest.mark.parametrize("name", NAMES)
def test_licence_and_citation_are_shown_and_kept(name, originals, cache, caplog):
    with caplog.at_level(logging.INFO, logger="bayescale"):
        runs = bs.public.load(name)
    table = bs.public.get(name)
    for said in (table.licence, table.citation):
        assert any(said in note for note in runs.notes)
        assert said in caplog.text
    assert "arXiv:" in table.citation


def test_a_table_is_fetched_once(originals, cache):
    first, second = bs.public.load("chinchilla-epoch"), bs.public.load("chinchilla-epoch")
    assert len(originals) == 1
    assert first.table_hash == second.table_hash
    assert [path.suffix for path in cache.iterdir()] == [".csv"]


def test_a_fetched_table_needs_no_network(originals, cache, monkeypatch):
    bs.public.load("chinchilla-epoch")
    monkeypatch.setattr(public, "ORIGIN", "http://127.0.0.1:9")
    assert len(bs.public.load("chinchilla-epoch")) == 245


def test_a_damaged_copy_is_fetched_again(originals, cache):
    bs.public.load("chinchilla-epoch")
    (kept,) = cache.iterdir()
    kept.write_bytes(kept.read_bytes()[:1000])
    assert len(bs.public.load("chinchilla-epoch")) == 245
    assert len(originals) == 2


@pytest.mark.parametrize("name", NAMES)
def test_another_file_at_the_address_is_refused_and_not_kept(name, served, cache):
    folder, _ = served
    table = bs.public.get(name)
    address = folder / table.repository / table.commit / table.file
    address.parent.mkdir(parents=True)
    address.write_bytes(gzip.compress(b"n_params,n_tokens,loss\n1e9,1e10,3\n"))
    with pytest.raises(ValueError, match=r"is not the file .* SHA-256 is not .* Nothing was kept.* by hand"):
        bs.public.load(name)
    assert list(cache.iterdir()) == []


def test_a_missing_address_says_what_to_do(served, cache):
    with pytest.raises(ConnectionError, match=r"404.*download that file by hand and give its path"):
        bs.public.load("chinchilla-epoch")


@pytest.mark.parametrize("name", NAMES)
def test_without_a_network_the_message_says_what_to_do(name, no_network, cache):
    table = bs.public.get(name)
    with pytest.raises(ConnectionError) as caught:
        bs.public.load(name)
    assert table.url in str(caught.value)
    assert f"load({name!r}, path={table.file.rsplit('/', 1)[-1]!r})" in str(caught.value)


def test_a_file_downloaded_by_hand_needs_no_network(no_network, cache, shared):
    for name, file in (
        ("chinchilla-epoch", "chinchilla-epoch/svg_extracted_data.csv"),
        ("clark-2022-routing", "clark-2022-routing/curves.csv.gz"),
    ):
        runs = bs.public.load(name, path=shared / "data" / file)
        assert runs.source == bs.public.get(name).url


def test_a_file_downloaded_by_hand_is_checked(no_network, cache, tmp_path):
    wrong = tmp_path / "svg_extracted_data.csv"
    wrong.write_text("n_params,n_tokens,loss\n1e9,1e10,3\n")
    with pytest.raises(ValueError, match=r"is not the file .* its SHA-256 is .* read_runs"):
        bs.public.load("chinchilla-epoch", path=wrong)
    with pytest.raises(FileNotFoundError, match=r"No file is at .* Download http"):
        bs.public.load("chinchilla-epoch", path=tmp_path / "nothing.csv")


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"'chinchila'; known: chinchilla-epoch, clark.* Did you mean"):
        bs.public.load("chinchila")


@pytest.mark.parametrize("name", bs.public.names())
def test_a_table_is_told_by_one_file_of_one_commit(name):
    table = bs.public.get(name)
    assert table.name == name
    assert table.url == f"{public.ORIGIN}/{table.repository}/{table.commit}/{table.file}"
    assert len(table.commit) == 40
    assert len(table.sha256) == 64
    assert public.ORIGIN.startswith("https://")
