// Entries embedded in a `.kiln` file, and the order in which the cache searches its layers.
#include "jit/cache/embedded_entries.hpp"

#include <gmock/gmock.h>

#include "fixtures.hpp"
#include "ir/container/container.hpp"
#include "ir/ops/all.hpp"

using namespace kiln;
using namespace kiln::testing;

namespace {

std::filesystem::path small_file(const scratch_folder& scratch) {
  program p;
  value x = p.main().add_parameter("x", {element_type::f32, {2}});
  p.main().set_outputs({p.main().add(elementwise{scalar_function::add},
                                     {x, p.main().add_constant(literal::filled({element_type::f32, {2}}, 3))})},
                       {"y"});
  write_options options;
  options.extras.tuning_hints = "hints";
  write_program(p, scratch / "m.kiln", options);
  return scratch / "m.kiln";
}

std::vector<std::byte> entry_of(int n, int payload) {
  return encode_kernel_entry(key_number(n).fields(), payload_number(payload));
}
std::string name_of(int n) { return entry_file_name(key_number(n).hash(), entry_kind::kernel); }

}  // namespace

TEST(embedded_entries, travel_byte_for_byte) {
  scratch_folder scratch;
  auto file = small_file(scratch);
  const std::string before = read_program(file).str();
  EXPECT_EQ(embedded_entries::read(file), nullptr);
  std::vector<std::vector<std::byte>> entries{entry_of(1, 1), entry_of(2, 2)};
  embedding done = embed_entries(file, entries);
  EXPECT_EQ(done.added, 2u);
  EXPECT_EQ(done.bytes, entries[0].size() + entries[1].size());
  const auto once = read_bytes(file);
  done = embed_entries(file, entries);
  EXPECT_EQ(done.present, 2u);
  EXPECT_EQ(done.added + done.replaced, 0u);
  EXPECT_EQ(read_bytes(file), once) << "nothing new: nothing written";
  entries = {entry_of(2, 7), entry_of(3, 3)};
  done = embed_entries(file, entries);
  EXPECT_EQ(done.replaced, 1u);
  EXPECT_EQ(done.added, 1u);
  auto embedded = embedded_entries::read(file);
  ASSERT_TRUE(embedded);
  EXPECT_EQ(embedded->all().size(), 3u);
  EXPECT_EQ(embedded->all().at(name_of(2)), entry_of(2, 7));
  EXPECT_FALSE(embedded->find(name_of(4)));
  EXPECT_EQ(read_program(file).str(), before);
  EXPECT_EQ(read_extras(file).tuning_hints, "hints");
  EXPECT_EQ(read_extras(file).objects[0].fields, decode_entry_head(read_extras(file).objects[0].payload).fields)
      << "for whoever looks into the file";
  auto damaged = entry_of(5, 5);
  damaged.back() ^= std::byte{1};
  const auto whole = read_bytes(file);
  EXPECT_THROW(embed_entries(file, std::vector<std::vector<std::byte>>{damaged}), error);
  auto prepared = encode_prepared_head(key_number(6).fields(), payload_number(6));
  auto payload = payload_number(6);
  prepared.insert(prepared.end(), payload.begin(), payload.end());
  EXPECT_THROW(embed_entries(file, std::vector<std::vector<std::byte>>{prepared}), error);
  EXPECT_EQ(read_bytes(file), whole);
}

// Each layer holds different bytes under the same key, so that the result shows which layer was used.
TEST(embedded_entries, stand_between_the_folders_and_the_remote_layer) {
  scratch_folder scratch;
  auto file = small_file(scratch);
  auto remote = std::make_shared<memory_layer>();
  for (int n : {1, 2, 3, 4}) remote->put(name_of(n), entry_of(n, 40));
  embed_entries(file, std::vector{entry_of(1, 30), entry_of(2, 30), entry_of(3, 30)});
  for (int n : {1, 2}) kernel_cache::open({scratch / "layer"})->store(key_number(n), payload_number(20));
  kernel_cache::open({scratch / "own"})->store(key_number(1), payload_number(10));
  auto cache = kernel_cache::open({.folder = scratch / "own",
                                   .read_only_layers = {scratch / "layer"},
                                   .embedded = embedded_entries::read(file),
                                   .remote = remote,
                                   .consent = {.allow_unsigned = true}});
  EXPECT_EQ(cache->find(key_number(1)), payload_number(10));
  EXPECT_EQ(cache->find(key_number(2)), payload_number(20));
  EXPECT_EQ(cache->find(key_number(3)), payload_number(30));
  EXPECT_EQ(cache->find(key_number(4)), payload_number(40));
  EXPECT_FALSE(cache->find(key_number(5)));
  cache_counters c = cache->counters();
  EXPECT_EQ(c.folder_hits, 1u);
  EXPECT_EQ(c.layer_hits, 1u);
  EXPECT_EQ(c.embedded_hits, 1u);
  EXPECT_EQ(c.remote_hits, 1u);
  EXPECT_EQ(c.hits, 4u);
  EXPECT_EQ(c.misses, 1u);
  EXPECT_EQ(c.stores + c.errors, 0u);
  // Only entries from the network are copied to the folder.
  for (int n : {2, 3}) EXPECT_FALSE(std::filesystem::exists(scratch / "own" / name_of(n))) << n;
  EXPECT_EQ(read_bytes(scratch / "own" / name_of(4)), entry_of(4, 40));
  EXPECT_EQ(cache->find_entry(key_number(3)), entry_of(3, 30));
}

TEST(embedded_entries, of_another_key_are_misses) {
  scratch_folder scratch;
  auto file = small_file(scratch);
  container_extras extras;
  extras.objects.push_back({key_number(1).hash(), {}, entry_of(2, 2)});
  extras.objects.push_back({key_number(3).hash(), {}, payload_number(3)});
  replace_extras(file, file, extras);
  warnings said;
  auto cache = kernel_cache::open({.folder = scratch / "own",
                                   .warn = said.sink(),
                                   .embedded = embedded_entries::read(file),
                                   .consent = {.allow_unsigned = true}});
  EXPECT_FALSE(cache->find(key_number(1)));
  EXPECT_FALSE(cache->find(key_number(3)));
  EXPECT_EQ(said.lines.size(), 1u);
  cache->store(key_number(1), payload_number(1));
  EXPECT_EQ(cache->find(key_number(1)), payload_number(1));
}
