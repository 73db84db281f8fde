"""The hazard checker on small kernels with and without a fault, on kernels of Kiln, and on those without a wait or a barrier.

    hazards_test.py KILN FOLDER
"""
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tools"))
import kiln_case  # noqa: E402
from kiln_case import KilnCase  # noqa: E402

import checks  # noqa: E402
import machine_code  # noqa: E402

LOAD = "global_load_dword v1, v0, s[0:1]"
EXCHANGE = ["v_lshlrev_b32_e32 v1, 2, v0", "ds_write_b32 v1, v0", "s_waitcnt lgkmcnt(0)", "s_barrier", "v_xor_b32_e32 v2, 0x100, v1", "ds_read_b32 v3, v2", "s_waitcnt lgkmcnt(0)", "v_mov_b32_e32 v4, v3", "s_endpgm"]


def faults(lines, processor="gfx942", threads=128):
    """The rules that are broken. Each instruction takes 4 bytes here, and '@N' is a jump to line N."""
    code = []
    for i, line in enumerate(lines):
        text, _, to = line.partition(" @")
        code.append(machine_code.Instruction(4 * i, text, 4 * int(to) if to else None))
    return [f.split()[0] for f in checks.check_kernel(machine_code.link(code), processor, threads)]


class Rules(unittest.TestCase):
    def test_a_result_is_used_after_the_wait_for_it(self):
        use = "v_add_u32_e32 v2, v1, v1"
        self.assertEqual(faults([LOAD, "s_waitcnt vmcnt(0)", use, "s_endpgm"]), [])
        self.assertEqual(faults([LOAD, use, "s_endpgm"]), ["wait"])
        self.assertEqual(faults([LOAD, "s_waitcnt lgkmcnt(0)", use, "s_endpgm"]), ["wait"])
        later = "global_load_dword v3, v0, s[0:1] offset:4"
        self.assertEqual(faults([LOAD, later, "s_waitcnt vmcnt(1)", use, "s_endpgm"]), [])
        self.assertEqual(faults([LOAD, later, "s_waitcnt vmcnt(2)", use, "s_endpgm"]), ["wait"])
        # A write would be overwritten by the load.
        self.assertEqual(faults([LOAD, "v_mov_b32_e32 v1, 0", "s_endpgm"]), ["wait"])
        # Scalar loads return in any order.
        scalars = ["s_load_dword s4, s[0:1], 0x0", "s_load_dword s5, s[0:1], 0x4"]
        self.assertEqual(faults([*scalars, "s_waitcnt lgkmcnt(1)", "s_add_i32 s6, s4, s4", "s_endpgm"]), ["wait"])
        # On one of two paths only.
        self.assertEqual(faults([LOAD, "s_cbranch_scc0 @3", "s_waitcnt vmcnt(0)", use, "s_endpgm"]), ["wait"])

    def test_counters_of_rdna_4(self):
        load, use = "global_load_b32 v1, v0, s[0:1]", "v_add_nc_u32_e32 v2, v1, v1"
        self.assertEqual(faults([load, "s_wait_loadcnt 0x0", use, "s_endpgm"], "gfx1201"), [])
        self.assertEqual(faults([load, "s_wait_dscnt 0x0", use, "s_endpgm"], "gfx1201"), ["wait"])
        self.assertEqual(faults([load, "s_wait_loadcnt_dscnt 0x100", use, "s_endpgm"], "gfx1201"), ["wait"])

    def test_waves_meet_at_a_barrier_before_they_exchange(self):
        self.assertEqual(faults(EXCHANGE), [])
        self.assertEqual(faults([x for x in EXCHANGE if x != "s_barrier"]), ["race"])
        self.assertEqual(faults([x for i, x in enumerate(EXCHANGE) if i != 2]), ["barrier"])
        mixed = [x.replace("v_xor_b32_e32 v2, 0x100, v1", "v_bitop3_b32 v2, 0x100, v1, v1 bitop3:0x3c") for x in EXCHANGE]
        self.assertEqual(faults(mixed, "gfx950"), [])
        self.assertEqual(faults([x.replace("0x100", "16") for x in mixed if x != "s_barrier"], "gfx950"), [])
        halves = [x.replace("v_xor_b32_e32 v2, 0x100, v1", "v_dual_bitop2_b32 v2, 0x100, v1 bitop3:0x14 :: v_dual_mov_b32 v9, 0").replace("s_waitcnt lgkmcnt(0)", "s_wait_dscnt 0x0")
                  for x in EXCHANGE]
        halves = [x.replace("s_barrier", "s_barrier_signal -1") for x in halves]
        halves.insert(4, "s_barrier_wait 0xffff")
        self.assertEqual(faults(halves, "gfx1250"), [])
        self.assertEqual(faults([x.replace("0x100", "16") for x in halves if "barrier_" not in x], "gfx1250"), [])
        self.assertIn("race", faults([x for x in halves if "barrier_" not in x], "gfx1250"))
        # A wave alone needs none, and neither does an exchange within each wave.
        self.assertEqual(faults([x for x in EXCHANGE if x != "s_barrier"], threads=64), [])
        self.assertEqual(faults([x.replace("0x100", "16") for x in EXCHANGE if x != "s_barrier"]), [])
        # Only one wave is active.
        one = ["v_cmp_gt_u32_e32 vcc, 64, v0", "s_and_saveexec_b64 s[2:3], vcc", *(x.replace("0x100", "16") for x in EXCHANGE if x != "s_barrier")]
        self.assertEqual(faults(one), [])

    def test_two_buffers_that_alternate(self):
        # s4 is 0 and 512 in turn; each iteration reads one buffer and writes the other.
        loop = ["s_mov_b32 s4, 0", "v_lshlrev_b32_e32 v1, 2, v0", "v_add_u32_e32 v2, s4, v1", "v_xor_b32_e32 v3, 0x100, v2", "ds_read_b32 v4, v3", "s_xor_b32 s4, s4, 0x200",
                "v_add_u32_e32 v5, s4, v1", "ds_write_b32 v5, v0", "s_waitcnt lgkmcnt(0)", "s_barrier", "s_cbranch_scc1 @2", "s_endpgm"]
        self.assertEqual(faults(loop), [])
        self.assertIn("race", faults([x if x != "s_barrier" else "s_nop 0" for x in loop]))
        # A register that counts does not make the buffers unknown.
        counts = [*(x.replace("@2", "@3") for x in ["v_mov_b32_e32 v6, 0", *loop])]
        counts.insert(8, "v_add_u32_e32 v6, 16, v6")
        self.assertEqual(faults(counts), [])
        self.assertIn("race", faults([x if x != "s_barrier" else "s_nop 0" for x in counts]))

    def test_loops_that_count_are_followed(self):
        # 40 turns read the first 160 bytes, then all waves write beyond them.
        loop = ["s_mov_b32 s4, 0", "v_lshlrev_b32_e32 v1, 2, v0", "v_mov_b32_e32 v2, s4", "ds_read_b32 v3, v2", "s_add_i32 s4, s4, 4", "s_cmpk_lt_u32 s4, 0xa0",
                "s_cbranch_scc1 @2", "ds_write_b32 v1, v1 offset:160", "s_waitcnt lgkmcnt(0)", "s_barrier", "s_endpgm"]
        self.assertEqual(faults(loop), [])
        self.assertIn("race", faults([x.replace("offset:160", "offset:156") for x in loop]))
        self.assertIn("race", faults([x.replace("0xa0", "0xa4") for x in loop]))
        self.assertEqual(faults([x.replace("s_add_i32", "s_add_co_i32").replace("s_waitcnt lgkmcnt(0)", "s_wait_dscnt 0x0").replace("ds_write", "ds_store").replace("ds_read", "ds_load")
                                 for x in loop], "gfx1201"), [])

    def test_branches_on_masks_and_bits_are_followed(self):
        # 8 is added to s4 while bit 6 of it is 0, so reads end before the writes begin.
        loop = ["s_mov_b32 s4, 0", "v_lshlrev_b32_e32 v1, 2, v0", "v_mov_b32_e32 v2, s4", "ds_read_b32 v3, v2", "s_add_i32 s4, s4, 8", "s_bitcmp0_b32 s4, 6", "s_cselect_b64 s[6:7], -1, 0",
                "s_and_b64 vcc, exec, s[6:7]", "s_cbranch_vccnz @2", "ds_write_b32 v1, v1 offset:60", "s_waitcnt lgkmcnt(0)", "s_barrier", "s_endpgm"]
        self.assertEqual(faults(loop), [])
        self.assertIn("race", faults([x.replace("offset:60", "offset:56") for x in loop]))
        by_value = [*loop[:5], "s_and_b32 s5, s4, 64", "s_cselect_b64 s[6:7], -1, 0", "s_andn2_b64 vcc, exec, s[6:7]", *loop[8:]]
        self.assertEqual(faults(by_value), [])
        self.assertIn("race", faults([x.replace("offset:60", "offset:56") for x in by_value]))

    def test_scalars_that_are_kept_in_lanes_of_a_vector_register(self):
        # Each wave accesses its own word, whose address goes through a lane.
        wave = ["v_readfirstlane_b32 s2, v0", "v_writelane_b32 v9, s2, 3", "s_mov_b32 s2, 0", "v_readlane_b32 s4, v9, 3", "v_mov_b32_e32 v1, s4", "ds_write_b32 v1, v0", "ds_read_b32 v3, v1",
                "s_waitcnt lgkmcnt(0)", "s_endpgm"]
        self.assertEqual(faults(wave), [])
        self.assertIn("race", faults([x.replace("s4, v9, 3", "s4, v9, 2") for x in wave]))
        self.assertIn("race", faults([*wave[:2], "v_add_u32_e32 v9, v9, v9", *wave[2:]]))
        self.assertIn("race", faults([*wave[:3], "v_writelane_b32 v9, s2, 3", *wave[3:]]))

    def test_registers_that_are_kept_elsewhere(self):
        # Each wave accesses its own words. The address lies in an accumulation register or in the thread's own memory meanwhile.
        begin, end = ["v_lshlrev_b32_e32 v1, 2, v0"], ["ds_write_b32 v1, v0", "ds_read_b32 v3, v1", "s_waitcnt lgkmcnt(0)", "s_endpgm"]
        lost = ["v_mov_b32_e32 v1, v8"]
        accumulator = ["v_accvgpr_write_b32 a2, v1", *lost, "v_accvgpr_read_b32 v1, a2"]
        self.assertEqual(faults([*begin, *accumulator, *end]), [])
        self.assertIn("race", faults([*begin, *accumulator[:-1], "v_accvgpr_read_b32 v1, a3", *end]))
        self.assertIn("race", faults([*begin, accumulator[0], "v_accvgpr_write_b32 a2, v8", *accumulator[1:], *end]))
        memory = ["scratch_store_dwordx2 off, v[0:1], off offset:8", *lost, "scratch_load_dword v1, off, off offset:12", "s_waitcnt vmcnt(0)"]
        self.assertEqual(faults([*begin, *memory, *end]), [])
        for more in ("scratch_store_dword off, v8, off offset:12", "scratch_store_dword v8, v9, off", "scratch_store_short off, v8, off offset:14"):
            self.assertIn("race", faults([*begin, memory[0], more, *memory[1:], *end]))
        self.assertIn("race", faults([*begin, "s_and_saveexec_b64 s[2:3], vcc", memory[0], "s_or_b64 exec, exec, s[2:3]", *memory[1:], *end]))

    def test_halves_of_registers(self):
        access = ["ds_write_b32 v1, v0", "ds_read_b32 v3, v1", "s_waitcnt lgkmcnt(0)", "s_endpgm"]
        # CDNA clears the other half, RDNA keeps it.
        self.assertEqual(faults(["v_lshlrev_b16_e32 v1, 2, v0", *access]), [])
        self.assertIn("race", faults(["v_lshlrev_b16 v1, 2, v0", *access], "gfx1201"))
        self.assertEqual(faults(["v_lshlrev_b16 v1, 2, v0", "v_or_b32_e32 v1, 0, v1", "v_and_b32_e32 v1, 0xffff, v1", *access], "gfx1201"), [])
        self.assertIn("race", faults(["v_lshlrev_b16 v1, 2, v0", "v_and_b32_e32 v1, 0x1ffff, v1", *access], "gfx1201"))
        halves = ["v_mov_b16_e64 v1.h, 0 op_sel:[0,1]", "v_lshlrev_b16 v1.l, 2, v0.l"]
        self.assertEqual(faults([*halves, *access], "gfx1100"), [])
        self.assertEqual(faults([*reversed(halves), *access], "gfx1100"), [])
        self.assertIn("race", faults([*halves, "v_mov_b16_e64 v1.h, v8.h op_sel:[1,1]", *access], "gfx1100"))
        self.assertEqual(faults(["v_lshlrev_b32_e32 v2, 18, v0", "v_mov_b16_e32 v1.l, v2.h", "v_mov_b16_e64 v1.h, 0 op_sel:[0,1]", *access], "gfx1100"), [])
        # Operands that are parts of registers.
        part = ["v_lshlrev_b32_e32 v2, 18, v0", "v_mov_b32_e32 v9, 0xffff", "v_and_b32_sdwa v1, v2, v9 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD"]
        self.assertEqual(faults([*part, *access]), [])
        for of, to in [("WORD_1", "WORD_0"), ("dst_sel:DWORD", "dst_sel:WORD_1"), ("v1, v2", "v1, sext(v2)")]:
            self.assertIn("race", faults([*(x.replace(of, to) for x in part), *access]))

    def test_the_low_half_of_a_product(self):
        row = ["v_mov_b32_e32 v9, 0", "v_mov_b32_e32 v8, v0", "v_mad_u64_u32 v[2:3], s[4:5], v0, 3, v[8:9]", "ds_write_b32 v2, v0", "ds_read_b32 v3, v2", "s_waitcnt lgkmcnt(0)", "s_endpgm"]
        self.assertEqual(faults(row), [])
        self.assertIn("race", faults([x.replace("v0, 3", "v7, 3") for x in row]))

    def test_halves_of_a_dual_instruction_read_before_they_write(self):
        wave = ["v_lshlrev_b32_e32 v9, 2, v0", "v_dual_cndmask_b32 v9, 0, v6 :: v_dual_lshlrev_b32 v8, 1, v9", "ds_store_b32 v8, v0", "ds_load_b32 v3, v8", "s_waitcnt lgkmcnt(0)", "s_endpgm"]
        self.assertEqual(faults(wave, "gfx1100"), [])

    def test_code_behind_the_end_of_a_kernel(self):
        # LLVM may place a block behind the last s_endpgm.
        lines = [(0, "s_cbranch_scc0 2", 8), (4, "s_endpgm", None), (8, "s_nop 1", None), (12, "s_branch 65533", 4), (16, "s_code_end", None), (20, "s_nop 0", None)]
        self.assertEqual([x.name for x in machine_code.instructions(machine_code.trimmed(lines))], ["s_cbranch_scc0", "s_endpgm", "s_nop", "s_branch"])

    def test_all_lanes_are_on_at_a_matrix_instruction(self):
        product = "v_mfma_f32_16x16x16_f16 v[2:5], v[8:9], v[4:5], 0"
        self.assertEqual(faults([product, "s_endpgm"]), [])
        self.assertEqual(faults(["s_and_saveexec_b64 s[2:3], vcc", product, "s_endpgm"]), ["exec"])
        self.assertEqual(faults(["s_and_saveexec_b64 s[2:3], vcc", "s_or_b64 exec, exec, s[2:3]", product, "s_endpgm"]), [])

    def test_resources(self):
        code = ["v_mov_b32_e32 v40, 0", "s_endpgm"]
        limits = {"registers": 256, "lds_bytes": 65536}
        self.assertEqual(checks.resource_faults(code, {"vgpr_count": 41, "group_segment_fixed_size": 65536}, limits), [])
        self.assertEqual(len(checks.resource_faults(code, {"vgpr_count": 40}, limits)), 1)
        self.assertEqual(len(checks.resource_faults(code, {"vgpr_count": 300, "group_segment_fixed_size": 70000}, limits)), 2)


class Kernels(KilnCase):
    def test_kernels_are_clean_and_mutations_are_found(self):
        file = self.compiled(self.conv_model(batch=4))
        folders = []
        for target in ["gfx942", "gfx10-3-generic", "gfx1100", "gfx1201"]:
            folders.append(self.path(target))
            self.kiln("finalize", file, "--target", target, "-o", folders[-1])
        run = [sys.executable, os.path.join(HERE, "hazards.py")]
        done = subprocess.run([*run, *folders], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = subprocess.run([*run, "--mutations", "60", *folders], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        sys.path.insert(0, os.path.join(os.path.dirname(HERE), "long"))
        import round_trip

        for folder in folders:
            for name in os.listdir(folder):
                if name.endswith(".hsaco"):
                    self.assertIsNone(round_trip.difference(os.path.join(folder, name), os.path.basename(folder)), name)


if __name__ == "__main__":
    kiln_case.main()
