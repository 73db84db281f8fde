// Opens a portable .kiln file on any device and runs it with zeros, for sizes that come when it runs:
//     run_any_size FILE [DEVICE [NAME=VALUE...]]
// kiln.hpp needs C++20 and libkiln_runtime only.
#include <cstdio>
#include <cstdlib>
#include <kiln.hpp>
#include <string>

namespace api = kiln::api;

int main(int argc, char** argv) try {
  if (argc < 2) return std::fprintf(stderr, "usage: run_any_size FILE [DEVICE [NAME=VALUE...]]\n"), 2;
  api::open_options options;
  if (argc > 2) options.device = argv[2];
  options.progress = [](std::size_t done, std::size_t total) {
    std::fprintf(stderr, "compiled %zu of %zu kernels\n", done, total);
  };
  api::session session(argv[1], options);
  api::dims sizes;
  for (int i = 3; i < argc; ++i) {
    const std::string text = argv[i];
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) return std::fprintf(stderr, "%s: it is not NAME=VALUE\n", argv[i]), 2;
    sizes.emplace_back(text.substr(0, equals), std::atoll(text.c_str() + equals + 1));
  }
  const api::program program = session.at(sizes);
  std::vector<api::tensor> inputs;
  for (const api::tensor_info& info : program.inputs()) inputs.emplace_back(info);
  const std::vector<api::tensor> outputs = program(inputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    std::printf("%s %zu bytes", program.outputs()[i].name.c_str(), outputs[i].bytes());
    if (outputs[i].type() == KILN_F32)
      for (float v : outputs[i].as<float>().first(std::min<std::size_t>(4, outputs[i].bytes() / 4)))
        std::printf(" %.6g", v);
    std::printf("\n");
  }
  return 0;
} catch (const api::error& e) {
  std::fprintf(stderr, "%s: %s\n", e.status_name(), e.what());
  return 1;
}
