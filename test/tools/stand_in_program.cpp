// Writes a .kiln file whose kernels are native ones of the stand-in for the CUDA driver (test/runtime/hip_stand_in), so
// that the command line can be tested on a GPU device where there is none: kiln_stand_in_program OUT.kiln
// branching|plain.
#include <cstdio>
#include <exception>

#include "graph_programs.hpp"
#include "ir/container/container.hpp"
#include "ir/trust/user_keys.hpp"

int main(int argc, char** argv) {
  using namespace kiln::testing;
  if (argc != 3) return 2;
  try {
    flavour = {[] { return module_text(); }, "sm_90"};
    // Signed by this user, so that this user's kiln runs it.
    auto keys = kiln::user_keys::of_this_user();
    kiln::write_options options;
    options.sign_with = keys ? keys->own() : nullptr;
    kiln::write_program(std::string(argv[2]) == "plain" ? plain_program() : branching_program(), argv[1], options);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
