"""Numbers as people read them: short, with a unit, of steady width."""


def count(number: float) -> str:
    """At most six characters.

    >>> count(999), count(12345), count(2_500_000)
    ('999', '12.3k', '2.50M')
    """
    return _scaled(number, 1000.0, ("", "k", "M", "G", "T"))


def size(number: float) -> str:
    """Bytes, in decimal units.

    >>> size(1_500_000)
    '1.50 MB'
    """
    return _scaled(number, 1000.0, (" B", " kB", " MB", " GB", " TB"))


def time_left(low_s: float | None, left_s: float, high_s: float | None) -> str:
    """The time left, for people to read, with its range if that is worth saying.

    >>> time_left(200.0, 250.0, 320.0)
    '4:10 left (3:20 to 5:20)'
    """
    words = f"{duration(left_s)} left"
    if low_s is None or high_s is None or duration(low_s) == duration(high_s):
        return words
    return f"{words} ({duration(low_s)} to {duration(high_s)})"


def duration(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> duration(75), duration(3675)
    ('1:15', '1:01:15')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def share(part: float, whole: float) -> str:
    """A percentage; anything above zero is never shown as 0 %.

    >>> share(1, 3), share(1, 100000), share(0, 0)
    ('33 %', '<0.1 %', '0 %')
    """
    percent = 100 * part / whole if whole else 0.0
    if 0 < percent < 0.1:
        return "<0.1 %"
    return f"{percent:.1f} %" if 0 < percent < 10 else f"{percent:.0f} %"


def _scaled(number: float, base: float, units: tuple[str, ...]) -> str:
    value, power = float(number), 0
    while value >= base * 0.9995 and power < len(units) - 1:  # 999.6 would be rounded to 1000
        value, power = value / base, power + 1
    if power == 0:
        return f"{value:.0f}{units[0]}"
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f}{units[power]}"
