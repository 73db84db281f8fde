// Writes the corpus of HIP kernels (test/spirv/reader/corpus) for another machine or an emulator: for each kernel the
// native object for a target, inputs and expectations as raw bytes, and in corpus.json how it is launched.
// test/long/spirv_corpus.py runs what it wrote. Prints how long finalization took.
//   spirv_corpus TARGET FOLDER
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "../spirv/reader/corpus.hpp"
#include "ir/error.hpp"
#include "jit/finalize_spirv.hpp"
#include "jit/targets.hpp"
#include "spirv/hip/hip_compiler.hpp"
#include "test/support/paths.hpp"

namespace {

using namespace kiln;
using json = nlohmann::json;

void write(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!out) throw error(error_kind::io, "cannot write " + path);
}

json tensors(const std::vector<literal>& values, const std::string& folder, const std::string& stem) {
  json list = json::array();
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::string file = stem + std::to_string(i) + ".bin";
    write(folder + "/" + file, values[i].bytes());
    list.push_back(
        {{"file", file}, {"type", std::string(name(values[i].type().type))}, {"bytes", values[i].bytes().size()}});
  }
  return list;
}

std::vector<shape> types_of(const std::vector<literal>& values) {
  std::vector<shape> result;
  for (const literal& v : values) result.push_back(v.type());
  return result;
}

void run(const std::string& target_name, const std::string& folder) {
  target_row target = find_target(target_name);
  std::map<std::string, spirv::compiled_source> files;
  json all = json::array();
  std::vector<std::pair<double, std::string>> times;  // milliseconds
  for (const corpus::test_case& c : corpus::cases()) {
    auto [file, fresh] = files.try_emplace(c.file);
    if (fresh)
      file->second = spirv::compile_hip_file(kiln::testing::source_folder() / "test/spirv/reader/corpus" / c.file,
                                             {.definitions = {}, .whole_module = false});
    for (const spirv::object& o : file->second.operators) {
      if (o.name != c.name) continue;
      auto payload = serialize(o);
      auto begin = std::chrono::steady_clock::now();
      native_kernel kernel = finalize_spirv(payload, types_of(c.inputs), types_of(c.expected), target);
      times.emplace_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count(),
                         c.name);
      write(folder + "/" + c.name + ".object", kernel.object);
      json launches = json::array(), scratch = json::array();
      for (const scratch_buffer& s : kernel.scratch) scratch.push_back(s.bytes);
      for (const launch& l : kernel.launches) {
        json arguments = json::array();
        for (const launch_argument& a : l.arguments)
          arguments.push_back({a.kind == buffer_kind::input    ? "input"
                               : a.kind == buffer_kind::output ? "output"
                                                               : "scratch",
                               a.index});
        launches.push_back({{"symbol", l.symbol},
                            {"grid", {l.grid, l.grid_y, l.grid_z}},
                            {"block", l.block},
                            {"lds", l.lds_bytes},
                            {"arguments", arguments}});
      }
      all.push_back({{"name", c.name},
                     {"object", c.name + ".object"},
                     {"inputs", tensors(c.inputs, folder, c.name + ".input")},
                     {"expected", tensors(c.expected, folder, c.name + ".expected")},
                     {"tolerance", c.tolerance},
                     {"launches", launches},
                     {"scratch", scratch}});
    }
  }
  std::ofstream(folder + "/corpus.json") << json{{"target", target_name}, {"kernels", all}}.dump(1) << '\n';
  std::ranges::sort(times);
  std::cout << all.size() << " kernels for " << target_name << ", finalized in " << times[times.size() / 2].first
            << " ms each (median), at most " << times.back().first << " ms (" << times.back().second << ")\n";
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::cerr << "usage: spirv_corpus TARGET FOLDER\n";
    return 2;
  }
  try {
    run(arguments[1], arguments[2]);
  } catch (const std::exception& e) {
    std::cerr << "spirv_corpus: " << e.what() << '\n';
    return 1;
  }
}
