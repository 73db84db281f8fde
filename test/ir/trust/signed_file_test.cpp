#include "ir/trust/signed_file.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "ir/error.hpp"
#include "test/support/scratch_folder.hpp"

using namespace kiln;
using namespace kiln::testing;
using ::testing::HasSubstr;

namespace {

void put(const std::filesystem::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

}  // namespace

TEST(signed_file, covers_name_version_and_bytes) {
  scratch_folder scratch;
  const signing_key key = signing_key::from_seed({1});
  const auto file = scratch / "m.kiln";
  put(file, "a model");
  const std::string text = signed_statement(describe_file(file, 3), key);
  put(signature_file_of(file), text);
  const signed_file found = read_signature_of(file);
  EXPECT_EQ(found.signer, key.public_half());
  EXPECT_EQ(found.statement.version, 3u);
  EXPECT_EQ(found.statement.name, "m.kiln");
  // Another name, other bytes.
  std::filesystem::copy_file(file, scratch / "n.kiln");
  put(scratch / "n.kiln.sig", text);
  EXPECT_THROW(read_signature_of(scratch / "n.kiln"), error);
  put(file, "a modem");
  EXPECT_THROW(read_signature_of(file), error);
  put(file, "a model");
  EXPECT_NO_THROW(read_signature_of(file));
  EXPECT_THROW(read_signature_of(scratch / "absent"), error);
  // Any change of the statement ends the signature.
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    try {
      read_statement(changed, "m.kiln.sig");
      ADD_FAILURE() << changed;
    } catch (const error& e) {
      EXPECT_EQ(e.kind(), error_kind::corrupted) << e.what();
    }
  }
  for (std::size_t size = 0; size + 1 < text.size(); ++size)
    EXPECT_THROW(read_statement(text.substr(0, size), "m.kiln.sig"), error) << size;
  EXPECT_THROW(read_statement(text + text, "m.kiln.sig"), error);
}
