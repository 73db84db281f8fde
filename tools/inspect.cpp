#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <tuple>

#include "ir/container/container.hpp"
#include "ir/container/files.hpp"
#include "ir/error.hpp"
#include "ir/json.hpp"
#include "ir/printable.hpp"
#include "ir/size_stages.hpp"
#include "ir/trust/native_consent.hpp"
#include "jit/compile_bytecode.hpp"
#include "jit/compile_worker.hpp"
#include "jit/emit.hpp"
#include "jit/targets.hpp"
#include "mlir_bridge/candidates.hpp"
#include "mlir_bridge/kernel/portable_kernel.hpp"
#include "spirv/disassembly.hpp"
#include "spirv/object.hpp"
#include "tools/command.hpp"
#include "tools/counts.hpp"
#include "tools/inspect_page.hpp"
#include "tools/model_options.hpp"
#include "tools/model_summary.hpp"
#include "tools/program_graph.hpp"
#include "tools/worker_choice.hpp"

namespace kiln::tools {
namespace {

struct options {
  std::string file, kernel, emit = "mlir", target = "native", candidates, html, dot;
  std::vector<std::string> dims;
  worker_choice workers;
  bool check = false;
};

// The kernel whose hash starts with `prefix`, with the shapes of its first use.
struct found_kernel {
  content_hash hash;
  std::string symbol;
  code_format format = code_format::mlir_bytecode;
  std::vector<shape> inputs;
};

found_kernel find_kernel(const program& p, const std::string& prefix) {
  std::map<std::string, found_kernel> found;
  for (const module& m : p.modules())
    for (const instruction& i : m.instructions()) {
      const auto* c = i.op().get_if<code_object>();
      if (!c || !c->payload.starts_with(prefix) || found.contains(c->payload)) continue;
      found_kernel k{content_hash::from_hex(c->payload), c->symbol, c->format, {}};
      for (value v : i.inputs()) k.inputs.push_back(v.type());
      found.emplace(c->payload, std::move(k));
    }
  if (found.empty()) throw error(error_kind::usage, fmt::format("no kernel of the file starts with '{}'", prefix));
  if (found.size() > 1)
    throw error(error_kind::usage,
                fmt::format("{} kernels of the file start with '{}': give more digits", found.size(), prefix));
  return found.begin()->second;
}

// inspect runs no code of the file, so it needs no trusted signature.
const native_consent look_only{.allow_unsigned = true};

// Calls `of_kernel` and adds the kernel's name to its errors.
template <class Work>
auto named(const found_kernel& k, Work of_kernel) {
  try {
    return of_kernel();
  } catch (const error& e) {
    throw error(e.kind(), fmt::format("kernel '{}' ({}): {}", k.symbol, k.hash.hex().substr(0, 16), e.what()));
  }
}

// The compiler reads the payload in a worker, unless --in-process is given.
std::string text_of(const program& p, const found_kernel& k, const options& o) {
  auto payload = p.kernel(k.hash);
  if (k.format == code_format::amdgcnspirv && o.emit == "spirv")
    return spirv::disassemble(spirv::deserialize_object(payload).words);
  auto workers = workers_for_files(o.workers);
  const target_row target = o.emit == "mlir" ? targets().front() : find_target(o.target);
  const std::vector<shape> inputs = o.emit == "mlir" ? std::vector<shape>() : k.inputs;
  return named(k, [&] {
    return workers ? text_in_worker(*workers, {payload, inputs, {}, target}, o.emit)
                   : emit_code(payload, inputs, target, o.emit);
  });
}

int emit_kernel(const options& o, const output_options& output) {
  program p = read_program(o.file, look_only);
  found_kernel k = find_kernel(p, o.kernel);
  std::string text = text_of(p, k, o);
  output.print({{"hash", k.hash.hex()}, {"emit", o.emit}, {"text", text}}, [&] { print_lines(stdout, text); });
  return 0;
}

// Prints the configurations that the tuner would try for a kernel. The option is "TARGET" or "TARGET:EFFORT".
int list_candidates(const options& o, const output_options& output) {
  const std::size_t colon = o.candidates.find(':');
  tuning_effort effort = tuning_effort::full;
  if (colon != std::string::npos && !parse_enum(std::string_view(o.candidates).substr(colon + 1), effort))
    throw error(error_kind::usage, fmt::format("--candidates {}: the effort is one of {}", o.candidates,
                                               fmt::join(enum_table<tuning_effort>::names, ", ")));
  const target_row target = find_target(o.candidates.substr(0, colon));
  program p = read_program(o.file, look_only);
  found_kernel k = find_kernel(p, o.kernel);
  auto workers = workers_for_files(o.workers);
  const auto configurations = named(k, [&] {
    if (workers) return candidates_in_worker(*workers, {p.kernel(k.hash), k.inputs, {}, target}, effort);
    compiler_context context;
    portable_kernel kernel = portable_kernel::parse(context, p.kernel(k.hash));
    kernel.specialize(k.inputs);
    return candidate_configurations(kernel, target, effort);
  });
  output.print(
      {{"hash", k.hash.hex()}, {"target", target.name}, {"effort", enum_name(effort)}, {"candidates", configurations}},
      [&] {
        for (const kernel_configuration& configuration : configurations) {
          std::string settings;
          for (const auto& [name, number] : configuration)
            settings += fmt::format("{}{}={}", settings.empty() ? "" : ",", name, number);
          print("{}\n", settings.empty() ? "(default)" : settings);
        }
      });
  return 0;
}

nlohmann::ordered_json describe_values(const std::vector<value>& values, const std::vector<std::string>& names) {
  auto list = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < values.size(); ++i)
    list.push_back({{"name", names[i]}, {"shape", values[i].type().str()}});
  return list;
}

// Describes how a kernel with open dimensions is compiled.
std::string sizes_of(const nlohmann::ordered_json& kernel) {
  const auto rows = kernel.find("rows");
  if (rows == kernel.end()) return "";
  if (kernel["all_sizes"].get<bool>()) return "  (for all sizes)";
  const auto missing = kernel["missing"].get<std::string>();
  const std::string why = missing.empty() ? "" : fmt::format(": {}", missing);
  if (rows->is_null()) return fmt::format("  (for each set of sizes{})", why);
  if (kernel["static_rows"].get<bool>()) return fmt::format("  (for any {})", rows->get<std::string>());
  return fmt::format("  (for any {}, and each set of other sizes{})", rows->get<std::string>(), why);
}

void print_open_kernels(const model_summary& summary) {
  auto print_line = [&](std::string_view start, const std::map<std::string, std::size_t>& missing) {
    std::size_t others = 0;
    std::string names;
    for (const auto& [operation, count] : missing) {
      others += count;
      names += fmt::format("{}{} {}", names.empty() ? ": " : ", ", operation, count);
    }
    print("{}: {} are compiled once, {} for each set of sizes{}\n", start, summary.open_kernels.size() - others, others,
          names);
  };
  print_line(fmt::format("{} kernels have open dimensions", summary.open_kernels.size()), summary.missing_forms());
  print_line("on GPUs", summary.gpu_missing_forms());
}

// The printed form of each portable kernel.
std::map<std::string, std::string> texts_of(const program& p, const options& o) {
  std::map<std::string, std::string> result;
  const auto workers = workers_for_files(o.workers);
  for (const module& m : p.modules())
    for (const instruction& i : m.instructions()) {
      const auto* c = i.op().get_if<code_object>();
      if (!c || c->format != code_format::mlir_bytecode || result.contains(c->payload)) continue;
      const found_kernel k{content_hash::from_hex(c->payload), c->symbol, c->format, {}};
      const auto payload = p.kernel(k.hash);
      result.emplace(c->payload, named(k, [&] {
                       return workers ? text_in_worker(*workers, {payload, {}, {}, targets().front()}, "mlir")
                                      : emit_code(payload, {}, targets().front(), "mlir");
                     }));
    }
  return result;
}

// The plan needs numbers for all open dimensions.
std::pair<std::optional<memory_plan>, std::string> memory_of(const program& p, const options& o) {
  const dim_bindings sizes = parse_bindings(o.dims);
  require_known_dimensions(p, sizes);
  std::string given, missing;
  for (const auto& [name, range] : p.symbols) {
    const auto size = sizes.find(name);
    if (size == sizes.end()) missing += fmt::format(" --dim {}=...", name);
    else given += fmt::format("{}{} = {}", given.empty() ? "For " : ", ", name, size->second);
  }
  if (!missing.empty()) return {std::nullopt, fmt::format("Sizes are open: the plan needs{}.", missing)};
  return {plan_memory(p.bind(sizes).main()), given.empty() ? given : given + "."};
}

void draw(const program& p, const options& o, const nlohmann::ordered_json& document) {
  inspect_page page{document, {}, {}, {}, {}};
  for (const module& m : p.modules()) page.modules.emplace_back(m.name(), graph_of(m));
  if (!o.dot.empty()) {
    std::string dot;
    for (const auto& [name, graph] : page.modules) dot += draw_dot(graph, name);
    container::output_file out(o.dot);
    out.write(std::as_bytes(std::span(dot)));
    out.commit();
  }
  if (o.html.empty()) return;
  page.kernels = texts_of(p, o);
  std::tie(page.memory, page.memory_note) = memory_of(p, o);
  write_inspect_page(o.html, page);
}

nlohmann::ordered_json describe_sections(const container_info& info) {
  auto sections = nlohmann::ordered_json::array();
  for (const section_info& s : info.sections)
    sections.push_back({{"kind", s.kind},
                        {"codec", s.codec},
                        {"offset", s.offset},
                        {"stored_bytes", s.stored_bytes},
                        {"raw_bytes", s.raw_bytes},
                        {"blake3", s.hash.hex()}});
  return sections;
}

nlohmann::ordered_json describe_kernels(const container_info& info, const program& p, const model_summary& summary) {
  std::map<std::string, std::pair<const code_object*, std::size_t>> uses;
  for (const module& m : p.modules())
    for (const instruction& i : m.instructions())
      if (const auto* c = i.op().get_if<code_object>()) ++uses.try_emplace(c->payload, c, 0).first->second.second;
  auto kernels = nlohmann::ordered_json::array();
  for (const kernel_info& k : info.kernels) {
    auto found = uses.find(k.hash.hex());
    kernels.push_back({{"hash", k.hash.hex()},
                       {"symbol", found == uses.end() ? "" : found->second.first->symbol},
                       {"format", found == uses.end() ? "" : std::string(enum_name(found->second.first->format))},
                       {"bytes", k.bytes},
                       {"uses", found == uses.end() ? 0 : found->second.second}});
    const auto open = summary.open_kernels.find(k.hash.hex());
    if (open == summary.open_kernels.end()) continue;
    const open_kernel_summary& kernel = open->second;
    kernels.back()["rows"] = kernel.rows.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(kernel.rows);
    kernels.back()["static_rows"] = kernel.static_rows;
    kernels.back()["all_sizes"] = kernel.all_sizes;
    kernels.back()["missing"] = kernel.missing;
    kernels.back()["gpu_all_sizes"] = kernel.gpu_all_sizes;
    kernels.back()["gpu_missing"] = kernel.gpu_missing;
  }
  return kernels;
}

// Prints the contents as text, without --json.
void print_contents(const options& o, const container_info& info, const program& p, const model_summary& summary,
                    const nlohmann::ordered_json& document) {
  print("{}: {} bytes, format {}, needs Kiln {} or newer{}\n", o.file, info.file_bytes, info.format_version,
        info.written_by, o.check ? ", every hash verified" : "");
  print("\nsections\n");
  for (const section_info& s : info.sections)
    print("  {:<14} {:<5} {:>12} bytes stored {:>12} raw  at {}\n", s.kind, s.codec, s.stored_bytes, s.raw_bytes,
          s.offset);
  print("\ninputs\n");
  for (const auto& v : document["inputs"])
    print("  {:<24} {}\n", v["name"].get<std::string>(), v["shape"].get<std::string>());
  print("outputs\n");
  for (const auto& v : document["outputs"]) {
    auto name = v["name"].get<std::string>();
    print("  {:<24} {}\n", name, v["shape"].get<std::string>());
    // The texts that output elements or columns stand for.
    for (std::string_view list : {"texts", "classes"})
      if (auto found = p.metadata.find(fmt::format("{}:{}", list, name)); found != p.metadata.end())
        print("  {:<24}   {} {}\n", "", list, printable(found->second));
  }
  if (!document["data_sizes"].empty()) {
    print("sizes that data decide: a session runs the part of the model that computes them first\n");
    for (const auto& name : document["data_sizes"]) print("  {}\n", name.get<std::string>());
  }
  print("\n{} for {}; {} left to the reference interpreter\n", counted(info.kernels.size(), "kernel"),
        counted(summary.code_objects, "code object"), counted(summary.interpreted, "operation"));
  for (const auto& k : document["kernels"])
    print("  {}  {:<14} {:>7} bytes  x{:<3} {}{}\n", k["hash"].get<std::string>().substr(0, 16),
          k["format"].get<std::string>(), k["bytes"].get<std::uint64_t>(), k["uses"].get<std::size_t>(),
          k["symbol"].get<std::string>(), sizes_of(k));
  if (!summary.open_kernels.empty()) print_open_kernels(summary);
  print("\nweights: {} tensors ({} folded), {} bytes stored for {}\n", info.tensors, info.folded_tensors,
        info.stored_weight_bytes, info.full_weight_bytes);
}

int inspect_file(const options& o, const output_options& output) {
  if (o.check) check(o.file);
  container_info info = inspect(o.file);
  program p = read_program(o.file, look_only);
  model_summary summary = summarize(p);
  nlohmann::ordered_json document{{"file", o.file},
                                  {"bytes", info.file_bytes},
                                  {"format_version", info.format_version},
                                  {"required_version", info.written_by},
                                  {"checked", o.check},
                                  {"manifest", parse_json(info.manifest)},
                                  {"sections", describe_sections(info)},
                                  {"kernels", describe_kernels(info, p, summary)}};
  std::vector<std::string> input_names;
  for (value v : p.main().parameters()) input_names.push_back(module::parameter_name(v));
  document["data_sizes"] = data_decided_sizes(p);
  document["missing_forms"] = summary.missing_forms();
  document["gpu_missing_forms"] = summary.gpu_missing_forms();
  document["inputs"] = describe_values(p.main().parameters(), input_names);
  document["outputs"] = describe_values(p.main().outputs(), p.main().output_names());
  document["code_objects"] = summary.code_objects;
  document["interpreted"] = summary.interpreted;
  document["operators"] = summary.operators;
  document["weights"] = {{"tensors", info.tensors},
                         {"folded", info.folded_tensors},
                         {"stored_bytes", info.stored_weight_bytes},
                         {"full_bytes", info.full_weight_bytes}};
  draw(p, o, document);
  output.print(document, [&] { print_contents(o, info, p, summary, document); });
  return 0;
}

}  // namespace

action declare_inspect(CLI::App& app) {
  auto o = std::make_shared<options>();
  app.add_option("FILE", o->file, ".kiln file")->required();
  app.add_flag("--check", o->check, "Verify every hash, including those of the weights");
  CLI::Option* kernel = app.add_option("--kernel", o->kernel,
                                       "Print the kernel with this hash, or with a hash that starts with these digits");
  app.add_option("--emit", o->emit, "Form of the kernel to print")
      ->needs(kernel)
      ->check(CLI::IsMember({"mlir", "spirv", "llvm", "asm"}));
  app.add_option("--target", o->target, "Target of the code (for llvm and asm)")->needs(kernel);
  app.add_option(
         "--candidates", o->candidates,
         "List the configurations that the tuner may try for the kernel: TARGET or TARGET:EFFORT (off, quick, full, "
         "exhaustive; default full), in the form of finalize's --configuration")
      ->needs(kernel);
  app.add_option("--html", o->html,
                 "Write a page with the graph of the kernels, what was fused into each, and the plan of memory")
      ->excludes(kernel);
  app.add_option("--dot", o->dot, "Write the graph for Graphviz (`dot -Tsvg`)")->excludes(kernel);
  app.add_option("--dim", o->dims, "NAME=VALUE of an open dimension, for the plan of memory of --html");
  add_worker_options(app, o->workers);
  return [o](const output_options& output) {
    return o->kernel.empty()       ? inspect_file(*o, output)
           : o->candidates.empty() ? emit_kernel(*o, output)
                                   : list_candidates(*o, output);
  };
}

}  // namespace kiln::tools
