#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <memory>

#include "ir/container/files.hpp"
#include "ir/error.hpp"
#include "ir/hash.hpp"
#include "spirv/disassembly.hpp"
#include "spirv/hip/hip_compiler.hpp"
#include "tools/command.hpp"
#include "tools/counts.hpp"
#include "tools/custom_ops.hpp"

namespace kiln::tools {
namespace {

struct options {
  std::string file, output, include_root;
  std::vector<std::string> definitions;
  bool disassemble = false;
};

constexpr std::array<std::string_view, 6> parameter_names{"pointer", "i32", "i64", "f32", "f64", "other"};

int compile_source(const options& o, const output_options& output) {
  spirv::compiled_source compiled;
  try {
    compiled = spirv::compile_hip_file(o.file, {.definitions = o.definitions, .include_root = o.include_root});
  } catch (const spirv::source_error& e) {
    print_lines(stderr, e.diagnostics());
    throw;
  }
  print_lines(stderr, compiled.warnings);
  if (!o.output.empty()) {
    container::output_file out(o.output);
    out.write(compiled.words);
    out.commit();
  }
  auto kernels = nlohmann::ordered_json::array(), operators = nlohmann::ordered_json::array();
  for (const spirv::hip_kernel& k : compiled.kernels) {
    std::vector<std::string_view> parameters;
    for (spirv::kernel_parameter p : k.parameters) parameters.push_back(parameter_names[static_cast<std::size_t>(p)]);
    kernels.push_back(
        {{"name", k.name}, {"symbol", k.symbol}, {"parameters", parameters}, {"max_threads", k.max_threads}});
  }
  for (const spirv::object& op : compiled.operators)
    operators.push_back({{"domain", op.domain},
                         {"name", op.name},
                         {"launches", op.launches.size()},
                         {"bytes", spirv::serialize(op).size()}});
  nlohmann::ordered_json document{{"file", o.file},
                                  {"bytes", compiled.words.size()},
                                  {"hash", blake3(compiled.words).hex()},
                                  {"kernels", kernels},
                                  {"operators", operators}};
  if (o.disassemble) document["text"] = spirv::disassemble(compiled.words);
  output.print(document, [&] {
    if (o.disassemble) return print_lines(stdout, document["text"].get<std::string>());
    print("{}: {} bytes of SPIR-V\n", o.file, compiled.words.size());
    for (const auto& k : kernels)
      print("  kernel    {:<24} at most {} threads\n", k["name"].get<std::string>(), k["max_threads"].get<int>());
    for (const auto& op : operators)
      print("  operator  {:<24} domain '{}', {}, {} bytes\n", op["name"].get<std::string>(),
            op["domain"].get<std::string>(), counted(op["launches"].get<int>(), "launch", "launches"),
            op["bytes"].get<int>());
  });
  return 0;
}

}  // namespace

action declare_hip(CLI::App& app) {
  auto o = std::make_shared<options>();
  app.add_option("FILE", o->file, "HIP C++ source")->required();
  app.add_option("-o,--output", o->output, "File for the SPIR-V module");
  app.add_option("-D", o->definitions, "NAME or NAME=VALUE for the preprocessor");
  add_include_root_option(app, o->include_root);
  app.add_flag("--disassemble", o->disassemble, "Print the module as text");
  return [o](const output_options& output) { return compile_source(*o, output); };
}

}  // namespace kiln::tools
