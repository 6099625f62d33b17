from hami_mock.kit.similar import did_you_mean, similar


def test_the_closest_word_is_meant_in_whatever_case() -> None:
    assert did_you_mean("Nvidia-Crads", ["mlu-cards", "nvidia-cards"]) == (
        "; did you mean nvidia-cards?"
    )
    assert did_you_mean("xyzzy", ["nvidia-cards"]) == ""
    assert similar("t4", ["T4", "L4", "A100"], most=2, cutoff=0.4) == ["T4", "L4"]
