from hami_mock.kit.plotting import thinned


def test_points_at_the_same_time_are_thinned_to_the_ends_of_a_line_straight_up() -> None:
    jump = [(0.0, 0.0), (1.0, 0.0), (1.0, 4.0), (1.0, 9.0), (2.0, 9.0)]
    assert thinned(jump) == [(0.0, 0.0), (1.0, 0.0), (1.0, 9.0), (2.0, 9.0)]


def test_what_sticks_out_of_a_line_straight_up_stays() -> None:
    spike = [(1.0, 0.0), (1.0, 7.0), (1.0, 2.0)]
    assert (1.0, 7.0) in thinned(spike)
