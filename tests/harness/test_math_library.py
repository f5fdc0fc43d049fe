"""Reports of mathematical libraries, as they were printed."""

from __future__ import annotations

import pytest
from harness.measuring.libraries import parse_reports

ONEDNN = """Core: Zen
onednn_verbose,info,oneDNN v2.4.4 (commit N/A)
onednn_verbose,info,cpu,runtime:OpenMP
onednn_verbose,info,cpu,isa:Intel AVX2
onednn_verbose,exec,cpu,matmul,brg:avx2,undef,src_f32::blocked:ab:f0,,,8x8:8x8:8x8,1.2
"""
MKL = """Core: Zen
MKL_VERBOSE Intel(R) MKL 2019.0 Update 5 Product build 20190808 for Intel(R) 64 architecture \
Intel(R) Architecture processors, Lnx 2.60GHz lp64 intel_thread
MKL_VERBOSE SGEMM(N,N,256,256,256,0x7ffe,256,0x556d,256) 2.67ms CNR:OFF Dyn:1 FastMM:1 TID:0
"""


@pytest.mark.parametrize(
    ("said", "library"),
    [
        (ONEDNN, "oneDNN v2.4.4, Intel AVX2, brg:avx2"),
        (MKL, "Intel(R) MKL 2019.0 Update 5, Intel(R) Architecture processors"),
        ("Core: SkylakeX\nCore: Barcelona\n", "OpenBLAS, core type Barcelona"),
        (ONEDNN.replace(",exec,", ",create,").replace("Core: Zen", ""), ""),
        (MKL.replace("SGEMM", "VSADD").replace("Core: Zen", ""), ""),
        ("", ""),
    ],
)
def test_the_library_that_multiplied_is_named(said: str, library: str) -> None:
    before = "Core: Haswell\nframebench: the framework is loaded now\n"
    assert parse_reports(before + said) == library
