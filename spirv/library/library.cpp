#include "spirv/library/library.hpp"

// Embeds the file that compile_library wrote.
asm(R"(
  .section .rodata
  .balign 16
kiln_library_begin:
  .incbin ")" KILN_LIBRARY_FILE R"("
kiln_library_end:
  .byte 0
  .previous
)");
extern "C" {
extern const std::byte kiln_library_begin[] __attribute__((visibility("hidden")));
extern const std::byte kiln_library_end[] __attribute__((visibility("hidden")));
}

namespace kiln::spirv {

const std::vector<object>& library() {
  static const std::vector<object> objects =
      unpack_library({kiln_library_begin, static_cast<std::size_t>(kiln_library_end - kiln_library_begin)});
  return objects;
}

}  // namespace kiln::spirv
