#include "ir/container/native_signature.hpp"

#include "ir/container/sections.hpp"
#include "ir/container/signed_native.hpp"
#include "ir/error.hpp"
#include "ir/trust/native_consent.hpp"

namespace kiln {

using namespace container;

namespace {

bool holds_code_to_sign(const std::filesystem::path& file) {
  const native_consent anybody{.allow_unsigned = true};
  if (needs_consent(read_program(file, anybody))) return true;
  const std::optional<program> steps = read_steps(file, anybody);
  return steps && needs_consent(*steps);
}

}  // namespace

native_signature read_native_signature(const std::filesystem::path& file) {
  native_signature result{holds_code_to_sign(file)};
  if (!result.native) return result;
  open_container opened(file);
  for (const section_row& row : opened.header().sections)
    if (row.kind != section_kind::weights) opened.raw(row.kind);
  try {
    result.signer = native_signer(opened);
  } catch (const error& e) {
    throw error(e.kind(), file.string() + ": " + e.what());
  }
  return result;
}

bool sign_native_code(const std::filesystem::path& file, const signing_key& key) {
  if (!holds_code_to_sign(file)) return false;
  open_container opened(file);
  std::vector<packed_section> sections;
  for (const section_row& row : opened.header().sections)
    if (row.kind != section_kind::weights && row.kind != section_kind::signature)
      sections.push_back(opened.packed(row.kind));
  sections.push_back(sign_native(sections, key));
  write_container(file, opened.header(), sections,
                  {opened.weights().size(), [&](output_file& out) { out.write(opened.weights()); }});
  return true;
}

}  // namespace kiln
