// exec_masks FILE.hsaco...: the matrix instructions of AMD code objects and those that some lanes may be off for
// (../mlir_bridge/gpu/exec_mask.hpp). One line for each kernel: file, symbol, instructions, matrix instructions,
// narrowed ones, vector registers, spilled registers. Exits 1 if there are narrowed ones.
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>

#include "../mlir_bridge/gpu/exec_mask.hpp"
#include "mlir_bridge/back_ends/amd/code_object_info.hpp"
#include "mlir_bridge/back_ends/amd/disassembly.hpp"

int main(int argc, char** argv) {
  bool found = false;
  for (int i = 1; i < argc; ++i) try {
      std::ifstream file(argv[i], std::ios::binary);
      if (!file) throw std::runtime_error("cannot be read");
      const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
      const auto object = std::as_bytes(std::span(bytes));
      for (const kiln::gpu::kernel_info& kernel : kiln::gpu::read_code_object(object)) {
        const auto lines = kiln::gpu::disassemble(object, kernel.name);
        const kiln::test::exec_mask_report report = kiln::test::check_exec_mask(lines);
        std::printf("%s %s %zu %d %zu %lld %lld\n", argv[i], kernel.name.c_str(), lines.size(),
                    report.matrix_instructions, report.narrowed.size(), static_cast<long long>(kernel.vgprs),
                    static_cast<long long>(kernel.vgpr_spills + kernel.sgpr_spills));
        found |= !report.narrowed.empty();
      }
    } catch (const std::exception& e) {
      std::fprintf(stderr, "exec_masks: %s: %s\n", argv[i], e.what());
      return 2;
    }
  return found;
}
