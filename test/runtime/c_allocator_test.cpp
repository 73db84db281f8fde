// The caller's memory (kiln_open_options.allocate) on the host.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "ir/container/container.hpp"
#include "ir/trust/native_consent.hpp"
#include "programs.hpp"
#include "runtime/kiln.h"
#include "runtime/kiln.hpp"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

// Memory that counts what is out.
struct counted_memory {
  void* allocate(std::size_t bytes, std::size_t alignment) {
    const std::lock_guard lock(mutex);
    if (left == 0) return nullptr;
    --left;
    void* const made = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    out.emplace(made, bytes);
    largest = std::max(largest, bytes);
    ++calls;
    return made;
  }
  void release(void* memory, std::size_t bytes) {
    const std::lock_guard lock(mutex);
    const auto found = out.find(memory);
    wrong += found == out.end() || found->second != bytes;
    if (found != out.end()) out.erase(found);
    std::free(memory);
  }
  std::mutex mutex;
  std::map<void*, std::size_t> out;
  std::size_t calls = 0, largest = 0, wrong = 0, left = SIZE_MAX;
};

class c_allocator : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "kiln-c-allocator-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
    ::setenv("XDG_CONFIG_HOME", (folder / "config").c_str(), 1);  // where this user's keys are
    program p;
    value x = p.main().add_parameter("x", vector_type), w = p.main().add_constant(vector_literal(ramp(1.0f)));
    value y = multiply_packed(p, p.main(), x, w);
    p.main().set_outputs({p.main().add(reshape{{dim(n), dim(1)}}, {y}), sum(p, p.main(), y)}, {"product", "total"});
    auto keys = user_keys::of_this_user();
    write_options written;
    written.sign_with = keys->own();
    write_program(p, folder / "model.kiln", written);
    file = (folder / "model.kiln").string();
    options.allocate = [this](std::size_t bytes, std::size_t alignment) { return memory.allocate(bytes, alignment); };
    options.release = [this](void* of, std::size_t bytes) { memory.release(of, bytes); };
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::filesystem::path folder;
  std::string file;
  counted_memory memory;
  api::open_options options;
};

void run(const api::program& program) {
  api::context context = program.make_context();
  // Packed weights are in reverse order.
  const std::vector<float> x = ramp(2.0f), weights = ramp(1.0f);
  std::vector<float> product(n);
  float total = 0;
  const void* inputs[] = {x.data()};
  void* outputs[] = {product.data(), &total};
  for (int i = 0; i < 3; ++i) {
    std::ranges::fill(product, 0.0f);
    context.run(inputs, outputs);
    for (std::size_t k = 0; k < product.size(); ++k) EXPECT_EQ(product[k], x[k] * weights[n - 1 - k]);
  }
}

TEST_F(c_allocator, all_memory_is_the_callers_and_comes_back) {
  {
    const api::program program(file, options);
    kiln_program_info info;
    ASSERT_EQ(kiln_program_get_info(program.get(), &info), KILN_OK);
    run(program);
    EXPECT_GE(memory.calls, 2u);
    EXPECT_GE(memory.largest, info.prepared_bytes);
    const std::size_t calls = memory.calls;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) threads.emplace_back([&] { run(program); });
    for (std::thread& t : threads) t.join();
    EXPECT_GT(memory.calls, calls);  // contexts have memory of their own
  }
  EXPECT_TRUE(memory.out.empty());
  EXPECT_EQ(memory.wrong, 0u);
}

TEST_F(c_allocator, no_memory_is_a_status) {
  for (std::size_t left = 0; left < 20; ++left) {
    memory.left = left;
    try {
      run(api::program(file, options));
      EXPECT_GE(left, 2u);
      left = 20;
    } catch (const api::error& e) {
      EXPECT_EQ(e.status(), KILN_OUT_OF_MEMORY) << e.what();
    }
    EXPECT_TRUE(memory.out.empty());
  }
}

TEST_F(c_allocator, wrong_uses_are_named) {
  kiln_program* program = nullptr;
  kiln_open_options c{};
  c.size = sizeof c;
  c.allocate = [](void*, std::size_t bytes, std::size_t) { return std::malloc(bytes); };
  EXPECT_EQ(kiln_program_open_with(file.c_str(), &c, &program), KILN_USAGE);
  EXPECT_THAT(kiln_last_error(), HasSubstr("both or neither"));
  options.device = "cuda:0";
  EXPECT_THROW(api::program(file, options), api::error);
  EXPECT_THAT(kiln_last_error(), HasSubstr("allocators are for the host"));
  options.device = "host";
  options.allocate = [&](std::size_t bytes, std::size_t alignment) {
    return static_cast<std::byte*>(memory.allocate(bytes + alignment, alignment)) + 1;
  };
  options.release = [&](void* of, std::size_t bytes) { memory.release(static_cast<std::byte*>(of) - 1, bytes + 64); };
  EXPECT_THROW(run(api::program(file, options)), api::error);
  EXPECT_THAT(kiln_last_error(), HasSubstr("not aligned"));
  EXPECT_TRUE(memory.out.empty());
}

}  // namespace
}  // namespace kiln::testing
