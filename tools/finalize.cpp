#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <span>

#include "ir/cancellation.hpp"
#include "ir/container/container.hpp"
#include "ir/container/files.hpp"
#include "ir/empty_results.hpp"
#include "ir/error.hpp"
#include "ir/native_kernel.hpp"
#include "ir/nearest_name.hpp"
#include "ir/open_dimensions.hpp"
#include "jit/compile_bytecode.hpp"
#include "jit/targets.hpp"
#include "mlir_bridge/kernel/configuration_names.hpp"
#include "runtime/launch_check.hpp"
#include "session/open_kernels.hpp"
#include "tools/command.hpp"
#include "tools/counts.hpp"
#include "tools/model_options.hpp"
#include "tools/native_file.hpp"
#include "tools/npy.hpp"
#include "tools/program_listing.hpp"
#include "tools/progress.hpp"
#include "tools/worker_choice.hpp"

namespace kiln::tools {
namespace {

struct options {
  std::string file, target, folder, native_file, specialize = "eager";
  std::vector<std::string> dims, configuration;
  cache_choice cache;
  worker_choice workers;
  bool export_constants = false;
};

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  container::output_file out(path);
  out.write(std::as_bytes(std::span(bytes)));
  out.commit();
}

std::string_view object_extension(target_family family) {
  switch (family) {
    case target_family::amdgpu: return "hsaco";
    case target_family::nvidia: return "ptx";
    case target_family::cpu: break;
  }
  return "o";
}

std::string_view text_of(buffer_kind kind) {
  switch (kind) {
    case buffer_kind::input: return "input";
    case buffer_kind::output: return "output";
    case buffer_kind::scratch: break;
    case buffer_kind::sizes: return "sizes";
  }
  return "scratch";
}

nlohmann::ordered_json describe_statistics(const launch_statistics& s) {
  return {{"registers", s.registers},
          {"accumulation_registers", s.accumulation_registers},
          {"scalar_registers", s.scalar_registers},
          {"spills", s.spills},
          {"private_bytes", s.private_bytes},
          {"static_lds_bytes", s.static_lds_bytes},
          {"matrix_instructions", s.matrix_instructions}};
}

nlohmann::ordered_json describe_tensor_map(const tensor_map& m) {
  return {{"argument", m.argument},
          {"type", name(m.type)},
          {"dims", m.dims},
          {"strides", m.strides},
          {"box", m.box},
          {"swizzle_bytes", m.swizzle_bytes},
          {"l2_promotion_bytes", m.l2_promotion_bytes}};
}

// The kernel's argument buffer: pointers of 8 bytes; tensor maps of 128 bytes passed by value and aligned to 64; and
// the table of sizes, which is passed by value on a GPU.
nlohmann::ordered_json describe_launch(const launch& l, const native_kernel& kernel, const instruction& use,
                                       const std::vector<std::int64_t>& sizes, bool by_value) {
  auto arguments = nlohmann::ordered_json::array(), maps = nlohmann::ordered_json::array();
  std::size_t end = 0;
  for (std::size_t i = 0; i < l.arguments.size(); ++i) {
    const launch_argument& a = l.arguments[i];
    std::size_t size = a.kind == buffer_kind::input    ? use.inputs()[a.index].type().bytes()
                       : a.kind == buffer_kind::output ? use.outputs()[a.index].bytes()
                       : a.kind == buffer_kind::sizes  ? sizes.size() * sizeof(std::int64_t)
                                                       : static_cast<std::size_t>(kernel.scratch[a.index].bytes);
    const bool mapped = std::ranges::find(l.tensor_maps, i, &tensor_map::argument) != l.tensor_maps.end();
    const std::size_t offset = mapped ? (end + 63) / 64 * 64 : end;
    end = offset + (mapped ? 128 : a.kind == buffer_kind::sizes && by_value ? size : 8);
    arguments.push_back({{"kind", text_of(a.kind)}, {"index", a.index}, {"size", size}, {"offset", offset}});
    if (a.kind == buffer_kind::sizes) arguments.back()["values"] = sizes;
  }
  for (const tensor_map& m : l.tensor_maps) maps.push_back(describe_tensor_map(m));
  return {{"symbol", l.symbol},
          {"grid", {l.grid, l.grid_y, l.grid_z}},
          {"block", {l.block, 1, 1}},
          {"lds_bytes", l.lds_bytes},
          {"prepare", l.prepare},
          {"waits", l.waits},
          {"arguments", arguments},
          {"tensor_maps", maps},
          {"statistics", describe_statistics(l.statistics)}};
}

nlohmann::ordered_json describe_scratch(const native_kernel& kernel) {
  auto buffers = nlohmann::ordered_json::array();
  for (const scratch_buffer& b : kernel.scratch)
    buffers.push_back({{"bytes", b.bytes}, {"prepared", b.prepared}, {"zeroed", b.zeroed}});
  return buffers;
}

kernel_configuration parse_configuration(const std::vector<std::string>& settings) {
  kernel_configuration configuration;
  for (const std::string& setting : settings) {
    const std::size_t at = setting.find('=');
    std::int64_t number = 0;
    const char* begin = setting.data() + (at == std::string::npos ? setting.size() : at + 1);
    auto [end, problem] = std::from_chars(begin, setting.data() + setting.size(), number);
    if (at == 0 || at == std::string::npos || problem != std::errc() || end != setting.data() + setting.size())
      throw error(error_kind::usage, fmt::format("--configuration: '{}' is not NAME=INTEGER", setting));
    const std::string name = setting.substr(0, at);
    const auto known = configuration_names();
    if (std::ranges::find(known, name) == known.end())
      throw error(error_kind::usage, fmt::format("--configuration {}: no generator has such a choice{}", setting,
                                                 did_you_mean(name, known)));
    if (auto [before, fresh] = configuration.emplace(name, number); before->second != number)
      throw error(error_kind::usage,
                  fmt::format("--configuration {}: it was {} before; give it once", setting, before->second));
  }
  return configuration;
}

nlohmann::ordered_json describe_compiled(const jit_report& report) {
  auto compiled = nlohmann::ordered_json::array();
  for (const kernel_report& k : report.kernels)
    compiled.push_back({{"symbol", k.symbol},
                        {"payload", k.payload},
                        {"occurrences", k.occurrences},
                        {"cached", k.cached},
                        {"compile_ms", k.compile_ms}});
  return compiled;
}

int print_native_file(const options& o, const target_row& target, const jit_report& report, bool all_sizes,
                      const output_options& output) {
  nlohmann::ordered_json document{{"file", o.file},
                                  {"target", target.name},
                                  {"native_file", o.native_file},
                                  {"compiled", describe_compiled(report)},
                                  {"finalize_ms", report.elapsed_ms},
                                  {"cache", {{"hits", report.hits}, {"misses", report.misses}}}};
  output.print(document, [&] {
    print("{}: {}{} on {} in {:.2f} s, written to {}\n", o.file, counted(report.kernels.size(), "kernel"),
          all_sizes ? " for all sizes" : "", target.name, report.elapsed_ms / 1e3, o.native_file);
  });
  return 0;
}

// Throws error{usage} for options that contradict each other.
void check_options(const options& o, const target_row& target, bool all_sizes) {
  if (all_sizes && !o.folder.empty())
    throw error(error_kind::usage,
                "--output: objects and kernels.json are for one set of sizes; leave it away, or --specialize off");
  if (o.folder.empty() && (o.native_file.empty() || o.export_constants))
    throw error(error_kind::usage, o.native_file.empty()
                                       ? "--output: name a folder for the objects, or a file with --native-file"
                                       : "--export-constants: name a folder for them with --output");
  if (!o.native_file.empty() && target.name == "native")
    throw error(error_kind::usage,
                "--native-file: the file may be used on other machines, so name a fixed target such as x86-64-v3");
}

// Throws error{usage} for open dimensions without a value.
void require_sizes(const program& portable, const dim_bindings& bindings) {
  require_dimensions(portable, bindings,
                     " with --dim NAME=N, or write a --native-file for all sizes with --specialize off");
}

// Finalizes `portable` for one set of sizes. With --specialize off, kernels that serve all sizes are used where there
// are some.
program finalize_for(const options& o, const program& portable, const dim_bindings& bindings, const jit_options& jit,
                     jit_report& report) {
  program bound = portable.bind(bindings);
  jit_report of_open;
  if (o.specialize == "off") {
    const bool host = jit.target.family == target_family::cpu;
    open_kernels open(portable, host ? processor::cpu : processor::gpu, {});
    of_open = open.finalize(jit, [](const std::string& text) { spdlog::warn("{}", text); });
    open.use_in(bound, &bindings);
  }
  program native = compile_bytecode(bound, jit, &report);
  std::ranges::move(of_open.kernels, std::back_inserter(report.kernels));
  report.hits += of_open.hits, report.misses += of_open.misses, report.elapsed_ms += of_open.elapsed_ms;
  return native;
}

// Writes the object of a kernel into `folder` and returns its file name.
std::string write_object(const std::string& folder, const code_object& c, const native_kernel& kernel,
                         target_family family) {
  std::string name = fmt::format("{}_{}.{}", file_name(c.symbol), c.payload.substr(0, 16), object_extension(family));
  // PTX ends with a NUL in memory; as a file it is text.
  const bool text = family == target_family::nvidia && !kernel.object.empty() && kernel.object.back() == std::byte{0};
  write_file(std::filesystem::path(folder) / name,
             {reinterpret_cast<const char*>(kernel.object.data()), kernel.object.size() - (text ? 1 : 0)});
  return name;
}

nlohmann::ordered_json texts_of(std::span<const shape> shapes) {
  auto texts = nlohmann::ordered_json::array();
  for (const shape& s : shapes) texts.push_back(s.str());
  return texts;
}

// Writes an object for each kernel of `native` and describes it with one of its uses. `written` gets the index of each
// payload's kernel in the result.
nlohmann::ordered_json write_kernels(const program& native, const dim_bindings& bindings, const std::string& folder,
                                     target_family family, std::map<std::string, std::size_t>& written) {
  auto kernels = nlohmann::ordered_json::array();
  for (const module& m : native.modules())
    for (const instruction& i : m.instructions()) {
      const auto* c = i.op().get_if<code_object>();
      // No kernel is compiled for an empty result.
      if (!c || gives_no_elements(i)) continue;
      native_kernel kernel = deserialize_native_kernel(native.kernel(content_hash::from_hex(c->payload)));
      const std::vector<std::int64_t> sizes = at_sizes(kernel, bindings);
      check_launches(i, kernel, enum_name(family));
      if (!written.try_emplace(c->payload, kernels.size()).second) continue;
      const std::string object = write_object(folder, *c, kernel, family);
      auto launches = nlohmann::ordered_json::array();
      for (const launch& l : kernel.launches)
        launches.push_back(describe_launch(l, kernel, i, sizes, family != target_family::cpu));
      std::vector<shape> inputs;
      for (value v : i.inputs()) inputs.push_back(v.type());
      kernels.push_back({{"symbol", c->symbol},
                         {"object", object},
                         {"payload", c->payload},
                         {"inputs", texts_of(inputs)},
                         {"outputs", texts_of(i.outputs())},
                         {"scratch", describe_scratch(kernel)},
                         {"launches", launches}});
    }
  return kernels;
}

// Writes the objects, kernels.json and, with --native-file, a file of the native kernels.
int write_folder(const options& o, const program& native, const dim_bindings& bindings, const target_row& target,
                 const jit_report& report, const output_options& output) {
  std::error_code failed;
  std::filesystem::create_directories(o.folder, failed);
  if (failed) throw error(error_kind::io, fmt::format("{}: {}", o.folder, failed.message()));
  std::map<std::string, std::size_t> written;
  const auto kernels = write_kernels(native, bindings, o.folder, target.family, written);
  if (!o.native_file.empty()) write_native_file(native, o.native_file, o.cache);
  nlohmann::ordered_json document{{"file", o.file},
                                  {"target", target.name},
                                  {"kernels", kernels},
                                  {"compiled", describe_compiled(report)},
                                  {"finalize_ms", report.elapsed_ms},
                                  {"cache", {{"hits", report.hits}, {"misses", report.misses}}}};
  auto listing =
      list_program(native, written,
                   o.export_constants ? std::optional(std::filesystem::path(o.folder) / "constants") : std::nullopt);
  write_file(std::filesystem::path(o.folder) / "kernels.json",
             json_text({{"target", target.name}, {"kernels", kernels}, {"program", listing}}));
  output.print(document, [&] {
    print("{}: {} for {} in {:.2f} s, written to {}\n", o.file, counted(kernels.size(), "kernel"), target.name,
          report.elapsed_ms / 1e3, o.folder);
  });
  return 0;
}

int finalize_file(const options& o, const output_options& output) {
  const target_row target = find_target(o.target);
  const bool all_sizes = !o.native_file.empty() && o.specialize == "off";  // of the native file
  check_options(o, target, all_sizes);
  const program portable = read_program(o.file, consent_of(o.cache));
  const dim_bindings bindings = parse_bindings(o.dims);
  require_known_dimensions(portable, bindings);
  if (!all_sizes) require_sizes(portable, bindings);
  auto cache = open_cache(o.cache, o.cache.disabled ? nullptr : embedded_entries::read(o.file));
  progress_bar progress("finalizing", output);
  jit_options jit{.target = target, .configuration = parse_configuration(o.configuration), .cache = cache.get()};
  jit.workers = workers_for_files(o.workers);
  jit.progress = [&](std::size_t done, std::size_t total) { progress.update(done, total); };
  jit_report report;
  const program native = all_sizes ? finalize_for_all_sizes(portable.bind(bindings), jit, report)
                                   : finalize_for(o, portable, bindings, jit, report);
  progress.finish();
  check_stop();  // write nothing after the time limit
  if (!o.folder.empty()) return write_folder(o, native, bindings, target, report, output);
  write_native_file(native, o.native_file, o.cache);
  return print_native_file(o, target, report, all_sizes, output);
}

}  // namespace

action declare_finalize(CLI::App& app) {
  auto o = std::make_shared<options>();
  app.add_option("FILE", o->file, ".kiln file")->required();
  app.add_option("--target", o->target, "Target, see kiln targets")->required();
  app.add_option("-o,--output", o->folder, "Folder for the objects and kernels.json");
  app.add_option("--native-file", o->native_file,
                 "Write a .kiln with these kernels instead of the portable ones: it runs without a compiler, on this "
                 "target only. With --specialize off and without --output: a file that serves all sizes of the "
                 "dimensions that --dim leaves open");
  app.add_flag("--export-constants", o->export_constants,
               "Also write the constants, as constants/value_ID.npy: with them kernels.json holds the whole program");
  add_worker_options(app, o->workers);
  app.add_option("--configuration", o->configuration,
                 "NAME=INTEGER,... settings for all kernels, such as wgmma=1,tile_m=128,tile_n=256, instead "
                 "of their defaults")
      ->delimiter(',');
  app.add_option("--dim", o->dims, "NAME=VALUE for an open dimension");
  app.add_option(
         "--specialize", o->specialize,
         "eager: compile every kernel for these dimensions; off: write kernels that serve all sizes where there "
         "are some, and their launches for these dimensions")
      ->check(CLI::IsMember({"eager", "off"}));
  add_cache_option(app, o->cache);
  add_remote_option(app, o->cache);
  app.add_flag("--no-cache", o->cache.disabled, "Neither read nor write the cache");
  return [o](const output_options& output) { return finalize_file(*o, output); };
}

}  // namespace kiln::tools
