// A key depends on everything that affects a kernel's bytes and on nothing else: changing any input changes it,
// changing the process's environment does not. test/tools/cache_test.py tests the latter with whole processes.
#include "jit/kernel_keys.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "jit/targets.hpp"

using namespace kiln;

namespace {

shape f32(std::vector<dim> dims) { return {element_type::f32, std::move(dims)}; }

struct inputs {
  std::vector<std::byte> payload = std::vector<std::byte>(200, std::byte{42});
  std::vector<shape> in{f32({2, 3}), {element_type::i8, {}}}, out{f32({2})};
  kernel_configuration configuration{{"tile_m", 8}, {"unroll", 2}};
  target_row target;
  std::string driver;

  content_hash key() const {
    kernel_key k = make_kernel_key(blake3(payload).hex(), in, out, configuration, target);
    k.driver = driver;
    return k.hash();
  }
};

// Every field of a row except its name and texts for people, because rows with different names may share code. A new
// field makes these bindings fail to compile, and must be added here and to describe().
std::vector<std::function<void(target_row&)>> edits_of_a_row(const target_row& row) {
  {
    [[maybe_unused]] const auto& [name, family, triple, processor, features, vector_bits, vector_registers, l1_bytes,
                                  l2_bytes, gpu, products, source] = row;
    [[maybe_unused]] const auto& [wave, lds_bytes, registers, register_file, max_threads, compute_units, matrix, dots,
                                  async_copy, tensor_copy, dependent_launch] = row.gpu;
  }
  std::vector<std::function<void(target_row&)>> edits{
      [](target_row& r) { r.family = r.family == target_family::cpu ? target_family::nvidia : target_family::cpu; },
      [](target_row& r) { r.triple += "x"; },
      [](target_row& r) { r.processor += "x"; },
      [](target_row& r) { r.features += ",+x"; },
      [](target_row& r) { r.vector_bits *= 2; },
      [](target_row& r) { ++r.vector_registers; },
      [](target_row& r) { ++r.l1_bytes; },
      [](target_row& r) { ++r.l2_bytes; },
  };
  if (row.family == target_family::cpu) return edits;
  for (auto edit : std::vector<std::function<void(gpu_row&)>>{
           [](gpu_row& g) { ++g.wave; },
           [](gpu_row& g) { ++g.lds_bytes; },
           [](gpu_row& g) { ++g.registers; },
           [](gpu_row& g) { ++g.register_file; },
           [](gpu_row& g) { ++g.max_threads; },
           [](gpu_row& g) { ++g.compute_units; },
           [](gpu_row& g) { g.matrix = g.matrix == matrix_unit::none ? matrix_unit::wgmma : matrix_unit::none; },
           [](gpu_row& g) { g.dots = g.dots == dot_unit::none ? dot_unit::f16 : dot_unit::none; },
           [](gpu_row& g) { g.async_copy = !g.async_copy; },
           [](gpu_row& g) { g.tensor_copy = !g.tensor_copy; },
           [](gpu_row& g) { g.dependent_launch = !g.dependent_launch; },
       })
    edits.push_back([edit](target_row& r) { edit(r.gpu); });
  return edits;
}

// Runs in another folder, environment and locale, and restores these afterwards for other tests.
struct elsewhere {
  std::filesystem::path folder = std::filesystem::current_path();
  std::string locale = std::setlocale(LC_ALL, nullptr);
  std::map<const char*, std::optional<std::string>> environment;

  elsewhere() {
    std::filesystem::current_path("/");
    for (const char* name : {"KILN_CACHE_DIR", "HOME", "TZ", "LANG", "TMPDIR", "OMP_NUM_THREADS"}) {
      const char* value = std::getenv(name);
      environment[name] = value ? std::optional<std::string>(value) : std::nullopt;
      ::setenv(name, "/nowhere", 1);
    }
    std::setlocale(LC_ALL, "");
  }
  ~elsewhere() {
    for (const auto& [name, value] : environment) value ? ::setenv(name, value->c_str(), 1) : ::unsetenv(name);
    std::setlocale(LC_ALL, locale.c_str());
    std::error_code gone;
    std::filesystem::current_path(folder, gone);
  }
};

}  // namespace

TEST(kernel_keys, every_input_changes_the_key) {
  std::size_t perturbations = 0;
  for (const target_row& row : targets()) {
    inputs base;
    base.target = row;
    std::set<content_hash> keys{base.key()};
    auto perturb = [&](const std::function<void(inputs&)>& edit) {
      inputs changed = base;
      edit(changed);
      EXPECT_TRUE(keys.insert(changed.key()).second) << row.name << ", perturbation " << keys.size();
      ++perturbations;
    };
    for (std::size_t byte = 0; byte < base.payload.size(); ++byte)
      perturb([byte](inputs& i) { i.payload[byte] ^= std::byte{1}; });
    perturb([](inputs& i) { i.payload.push_back(std::byte{0}); });
    perturb([](inputs& i) { i.payload.pop_back(); });
    perturb([](inputs& i) { i.in[0].dims[1] = 4; });
    perturb([](inputs& i) { i.in[0].dims = {3, 2}; });
    perturb([](inputs& i) { i.in[0].dims = {6}; });
    perturb([](inputs& i) { i.in[0].dims = {2, 3, 1}; });
    perturb([](inputs& i) { i.in[0].type = element_type::f16; });
    perturb([](inputs& i) { i.in[1].type = element_type::u8; });
    perturb([](inputs& i) { std::swap(i.in[0], i.in[1]); });
    perturb([](inputs& i) { i.in.pop_back(); });
    perturb([](inputs& i) { i.out[0].type = element_type::bf16; });
    perturb([](inputs& i) { i.out.push_back(i.in[0]); });
    perturb([](inputs& i) { i.out.insert(i.out.begin(), i.in.back()), i.in.pop_back(); });
    perturb([](inputs& i) { i.configuration["tile_m"] = 9; });
    perturb([](inputs& i) { i.configuration["tile_n"] = 8; });
    perturb([](inputs& i) { i.configuration.clear(); });
    perturb([](inputs& i) { i.configuration = {{"tile_m", 2}, {"unroll", 8}}; });
    perturb([](inputs& i) { i.driver = "580.65"; });
    for (const auto& edit : edits_of_a_row(row)) perturb([&](inputs& i) { edit(i.target); });
  }
  // Inputs that the compiler itself adds.
  kernel_key base = make_kernel_key("ab", {}, {}, {}, targets()[0]);
  std::set<content_hash> keys{base.hash()};
  for (std::string kernel_key::* field : {&kernel_key::payload, &kernel_key::target, &kernel_key::code,
                                          &kernel_key::llvm, &kernel_key::driver, &kernel_key::constants}) {
    kernel_key changed = base;
    changed.*field += "1";
    EXPECT_TRUE(keys.insert(changed.hash()).second);
    ++perturbations;
  }
  EXPECT_FALSE(base.code.empty() || base.llvm.empty());
  std::printf("%zu perturbations of %zu targets\n", perturbations, targets().size());
}

TEST(kernel_keys, nothing_else_does) {
  auto key_here = [] {
    inputs i;
    i.target = find_target("x86-64-v3");
    return i.key();
  };
  const content_hash key = key_here();
  inputs renamed;
  renamed.target = find_target("x86-64-v3");
  renamed.target.name = "another name for the same row";
  EXPECT_EQ(renamed.key(), key);
  elsewhere process;
  EXPECT_EQ(key_here(), key);
  std::thread([&] { EXPECT_EQ(key_here(), key); }).join();
}
