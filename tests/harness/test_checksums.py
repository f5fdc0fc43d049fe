"""CRC-32C of record files."""

from __future__ import annotations

from core.checksums import crc32c


def test_checksums_are_those_of_the_standard() -> None:
    """Fail if the CRC-32C differs from RFC 3720, appendix B.4."""
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    for length in (4, 1023, 1024, 1025, 5000):
        content = bytes(number * 7 % 251 for number in range(length))
        state = 0xFFFFFFFF
        for byte in content:  # bit by bit
            state ^= byte
            for _ in range(8):
                state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
        assert crc32c(content) == state ^ 0xFFFFFFFF
