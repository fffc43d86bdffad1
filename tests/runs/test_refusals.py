"""What is no table of runs is refused with a way out."""

import pytest

from bayescale.runs import read_runs


def written(tmp_path, content):
    path = tmp_path / "runs.csv"
    path.write_text(content)
    return path


def test_a_chart_of_curves_by_name_alone_is_explained(tmp_path):
    with pytest.raises(ValueError, match=r"one column a run \(2 runs: run-a, run-b\), one row a step \(2 steps\)"):
        read_runs(written(tmp_path, "Step,run-a,run-b\n0,9,9\n100,4,4\n"))
    with pytest.raises(ValueError, match="the columns are not settled") as caught:
        read_runs(written(tmp_path, "step,params,note\n0,1e8,9\n"))
    assert "wide form" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# exported\nparams,tokens,loss\n1e8,2e9,3\n", "the first line is '# exported'.*Delete what stands above it"),
        ("params tokens loss\n1e8 2e9 3\n", "The only column is 'params tokens loss': separate columns by commas"),
        ("params,tokens,loss,loss\n1e8,2e9,3,3\n", r"'loss' \(2 times\). Rename or delete all but one"),
    ],
    ids=["comment", "spaces", "twice"],
)
def test_a_header_that_is_none_is_refused_with_the_way_out(tmp_path, text, said):
    with pytest.raises(ValueError, match=said):
        read_runs(written(tmp_path, text))


def test_each_multiple_is_a_way_out_and_none_is_guessed(tmp_path):
    """N in millions and D in billions: one hint for both would be wrong for one of them."""
    path = written(tmp_path, "N,D,loss\n" + "\n".join(f"{30 + k},{3 + k},3.{k}" for k in range(9)))
    with pytest.raises(ValueError, match=r"units=\{'n_tokens': 'M'\} or units=\{'n_tokens': 'B'\}"):
        read_runs(path)
    assert read_runs(path, units={"n_params": "M", "n_tokens": "B"}).table["n_tokens"].iloc[0] == 3e9


@pytest.mark.parametrize(
    ("header", "values", "settings", "doubted"),
    [
        ("loss", (12.8, 9.7, 7.5), {}, True),
        ("loss", (4.1, 3.2, 2.9), {}, False),
        ("loss", (12.8, 9.7, 7.5), {"loss_unit": "nats per token"}, False),
        ("loss (nats per token)", (12.8, 9.7, 7.5), {}, False),
        ("loss", (12.8, 9.7, 7.5), {"loss_unit": "perplexity"}, False),
    ],
    ids=["high", "usual", "declared", "by its header", "converted"],
)
def test_a_loss_that_may_be_a_perplexity_is_doubted_unless_declared(tmp_path, header, values, settings, doubted):
    rows = "\n".join(f"{k}e8,{2 * k}e9,{v}" for k, v in enumerate(values, 1))
    runs = read_runs(written(tmp_path, f"params,tokens,{header}\n{rows}\n"), **settings)
    assert any("If these are perplexities" in note for note in runs.notes) is doubted
