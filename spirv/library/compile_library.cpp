// compile_library OUTPUT SOURCE.hip...: the build step that compiles the library's objects. Errors are printed to
// standard error in Clang's format.
#include <cstdio>
#include <fstream>

#include "spirv/hip/hip_compiler.hpp"
#include "spirv/library/library.hpp"

int main(int count, char** arguments) {
  using namespace kiln::spirv;
  if (count < 3) return std::fprintf(stderr, "compile_library OUTPUT SOURCE.hip...\n"), 2;
  std::vector<object> objects;
  for (int i = 2; i < count; ++i) try {
      auto compiled = compile_hip_file(arguments[i], {.whole_module = false});
      std::fputs(compiled.warnings.c_str(), stderr);
      for (object& o : compiled.operators) objects.push_back(std::move(o));
    } catch (const source_error& e) {
      return std::fputs(e.diagnostics().c_str(), stderr), 1;
    } catch (const kiln::error& e) {
      return std::fprintf(stderr, "%s\n", e.what()), 1;
    }
  std::vector<std::byte> bytes = pack_library(objects);
  std::ofstream out(arguments[1], std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out.close();
  return out ? 0 : 1;
}
