// Launches that the runtime runs once, at load, and what they leave.
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "plan_fixture.hpp"

namespace kiln::testing {
namespace {

class prepared_plans : public plans {};

struct memory_store final : prepared_store {
  std::map<content_hash, std::shared_ptr<std::vector<std::byte>>> entries;
  int finds = 0, hits = 0, stores = 0;
  bool wrong_size = false;
  std::optional<prepared_bytes> find(const content_hash& key) noexcept override {
    ++finds;
    auto it = entries.find(key);
    if (it == entries.end()) return std::nullopt;
    ++hits;
    auto* aligned = it->second->data() + (64 - reinterpret_cast<std::uintptr_t>(it->second->data()) % 64) % 64;
    return prepared_bytes{{aligned, it->second->size() - 64 - (wrong_size ? 1 : 0)}, it->second};
  }
  void store(const content_hash& key, const prepared_bytes& prepared) noexcept override {
    const auto bytes = prepared.bytes;
    ++stores;
    auto memory = std::make_shared<std::vector<std::byte>>(bytes.size() + 64);
    auto* aligned = memory->data() + (64 - reinterpret_cast<std::uintptr_t>(memory->data()) % 64) % 64;
    std::memcpy(aligned, bytes.data(), bytes.size());
    entries[key] = memory;
  }
};

TEST_F(prepared_plans, prepare_launches_over_constants_run_once_at_load) {
  value x = m.add_parameter("x", vector_type);
  value w = m.add_constant(vector_literal(ramp(1.0f)));
  value same = m.add_constant(vector_literal(ramp(1.0f)));  // equal content, another instruction
  value other = m.add_constant(vector_literal(ramp(2.0f)));
  value y = multiply_packed(p, m, x, w);
  y = multiply_packed(p, m, y, m.add(reshape{{dim(n)}}, {same}));
  y = multiply_packed(p, m, y, other);
  m.set_outputs({y}, {"y"});
  memory_store store;
  plan_options options{.store = &store};
  auto expect_right = [&](const executable& e) {
    auto outputs = run_poisoned(e, {vector_literal(ramp(0.5f))});
    for (std::size_t i = 0; i < n; ++i) {
      float reversed = 1.0f + static_cast<float>(n - 1 - i);
      EXPECT_FLOAT_EQ(outputs[0].as<float>()[i], (0.5f + static_cast<float>(i)) * reversed * reversed * (reversed + 1))
          << i;
    }
  };
  executable first = load(p, device, options);
  expect_right(first);
  EXPECT_EQ(first.plan().report.launches, 3u);
  EXPECT_EQ(first.plan().report.prepared_made, 2u);
  EXPECT_EQ(first.plan().report.prepared_bytes, 2 * n * sizeof(float));
  EXPECT_EQ(store.stores, 2);
  executable second = load(p, device, options);
  expect_right(second);
  EXPECT_EQ(second.plan().report.prepared_found, 2u);
  EXPECT_EQ(second.plan().report.prepared_made, 0u);
  EXPECT_EQ(store.stores, 2);
  // Plans of one device share packed weights, so use another device, which must read the store. A damaged entry is a
  // miss.
  store.wrong_size = true;
  host_device other_device{2};
  executable third = load(p, other_device, options);
  expect_right(third);
  EXPECT_EQ(third.plan().report.prepared_made, 2u);
  // The plan outlives the store's entries and the program.
  store.entries.clear();
  expect_right(second);
  expect_right(load(p, device));
}

// Kernels for other batch sizes, of other models or with other configurations that pack weights in the same way share
// one copy.
TEST_F(prepared_plans, prepared_buffers_are_shared_by_kernels_that_pack_alike) {
  value x = m.add_parameter("x", vector_type), w = m.add_constant(vector_literal(ramp(1.0f)));
  auto first = make_kernel(
      {make_launch("reverse", n, {in(1), scratch(0)}, true), make_launch("multiply", n, {in(0), scratch(0), out(0)})},
      {{n * sizeof(float), true}});
  // It has another payload, its weights are another input, and another scratch buffer comes first.
  auto alike =
      make_kernel({make_launch("twice", n, {in(1), scratch(0)}), make_launch("reverse", n, {in(0), scratch(1)}, true),
                   make_launch("multiply", n, {scratch(0), scratch(1), out(0)})},
                  {{n * sizeof(float), false}, {n * sizeof(float), true}});
  auto wider = alike, shorter = alike, other = alike;
  wider.scratch[1].bytes += 64;
  shorter.launches[1].grid = n - 1;
  other.launches[1].symbol = "twice";
  value y = call(p, m, "first", first, {x, w}, {vector_type});
  for (const auto& kernel : {alike, wider, shorter, other}) y = call(p, m, "next", kernel, {w, y}, {vector_type});
  m.set_outputs({y}, {"y"});
  memory_store store;
  executable e = load(p, device, {.store = &store});
  EXPECT_EQ(store.entries.size(), 4u);
  EXPECT_EQ(e.plan().report.prepared_made, 4u);
}

TEST_F(prepared_plans, launches_begin_early_unless_an_earlier_step_writes_what_they_read_early) {
  launch early = make_launch("add", n, {in(0), in(1), out(0)});
  early.early_arguments = {1};
  const auto add_early = [&](value a, value b) {
    return call(p, m, "add", make_kernel({early}), {a, b}, {vector_type});
  };
  value x = m.add_parameter("x", vector_type), c = m.add_constant(vector_literal(ramp(5.0f)));
  const value of_constant = add_early(x, c), of_input = add_early(of_constant, x),
              of_arena = add_early(of_input, of_constant), of_output = add_early(of_arena, of_input);
  m.set_outputs({of_output, of_input}, {"y", "z"});
  executable e = load(p, device);
  const auto& steps = e.plan().blocks[0].steps;
  std::vector<bool> waits;
  for (const plan_step& step : steps) waits.push_back(std::get<launch_step>(step.what).waits);
  EXPECT_EQ(waits, (std::vector<bool>{true, true, false, false}));
}

TEST_F(prepared_plans, prepare_launches_over_inputs_run_every_time) {
  value x = m.add_parameter("x", vector_type);
  value w = m.add_parameter("w", vector_type);
  m.set_outputs({multiply_packed(p, m, x, w)}, {"y"});
  executable e = load(p, device);
  EXPECT_EQ(e.plan().report.launches, 2u);
  EXPECT_EQ(e.plan().report.prepared_bytes, 0u);
  for (float first : {1.0f, -4.0f}) {
    auto outputs = run_poisoned(e, {vector_literal(ramp(2.0f)), vector_literal(ramp(first))});
    for (std::size_t i = 0; i < n; ++i)
      EXPECT_EQ(outputs[0].as<float>()[i], (2.0f + static_cast<float>(i)) * (first + static_cast<float>(n - 1 - i)));
  }
}

// Scratch that is filled partly from a constant and partly from an input cannot be kept.
TEST_F(prepared_plans, prepare_launches_that_share_scratch_with_a_varying_one_run_every_time) {
  value x = m.add_parameter("x", vector_type);
  value w = m.add_constant(vector_literal(ramp(1.0f)));
  auto kernel = make_kernel(
      {make_launch("reverse", n, {in(1), scratch(0)}, true), make_launch("reverse", 10, {in(0), scratch(0)}, true),
       make_launch("multiply", n, {in(0), scratch(0), out(0)})},
      {{n * sizeof(float), true}});
  m.set_outputs({call(p, m, "mixed", kernel, {x, w}, {vector_type})}, {"y"});
  executable e = load(p, device);
  EXPECT_EQ(e.plan().report.launches, 3u);
  auto outputs = run_poisoned(e, {vector_literal(ramp(2.0f))});
  for (std::size_t i = 0; i < n; ++i)
    EXPECT_EQ(outputs[0].as<float>()[i],
              (2.0f + static_cast<float>(i)) * ((i < 10 ? 2.0f : 1.0f) + static_cast<float>(n - 1 - i)));
}

TEST_F(prepared_plans, padding_of_prepared_buffers_is_zero) {
  value x = m.add_parameter("x", vector_type), w = m.add_constant(vector_literal(ramp(1.0f)));
  auto kernel = make_kernel(
      {make_launch("reverse", n, {in(1), scratch(0)}, true), make_launch("multiply", n, {in(0), scratch(0), out(0)})},
      {{200000, true}});
  m.set_outputs({call(p, m, "padded", kernel, {x, w}, {vector_type})}, {"y"});
  memory_store store;
  {
    device_memory dirty = device.allocate(200000);  // so that fresh memory is not zero by luck
    std::memset(dirty.data(), 0xFF, 200000);
  }
  executable e = load(p, device, {.store = &store});
  ASSERT_EQ(store.entries.size(), 1u);
  auto stored = store.find(store.entries.begin()->first)->bytes;
  ASSERT_EQ(stored.size(), 200000u);
  EXPECT_EQ(std::ranges::count_if(stored.subspan(n * sizeof(float)), [](std::byte b) { return b != std::byte{0}; }), 0);
}

// --- refusals ---

}  // namespace
}  // namespace kiln::testing
