#include "ir/container/signed_native.hpp"

#include <algorithm>

#include "ir/error.hpp"
#include "ir/trust/known_kernels.hpp"
#include "ir/trust/native_consent.hpp"

namespace kiln::container {
namespace {

constexpr std::string_view domain = "Kiln native program 1\n";
constexpr std::array covered{section_kind::manifest, section_kind::program, section_kind::kernels,
                             section_kind::weights_index, section_kind::steps};

template <class T>
void put(std::vector<std::byte>& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i)));
}

// `row_of` returns the description of a section: codec, both sizes and hash. Nothing for a file without steps.
template <class RowOf>
std::vector<std::byte> signed_message(RowOf row_of) {
  auto line = std::as_bytes(std::span(domain));
  std::vector<std::byte> message(line.begin(), line.end());
  for (section_kind kind : covered) {
    const std::optional<section_row> row = row_of(kind);
    if (!row) continue;
    put(message, static_cast<std::uint32_t>(kind));
    put(message, static_cast<std::uint32_t>(row->codec));
    put(message, row->stored_bytes);
    put(message, row->raw_bytes);
    auto hash = std::as_bytes(std::span(row->hash.bytes));
    message.insert(message.end(), hash.begin(), hash.end());
  }
  return message;
}

}  // namespace

bool holds_native(const program& p) {
  for (const module& m : p.modules())
    for (const instruction& i : m.instructions())
      if (const auto* c = i.op().get_if<code_object>(); c && c->format == code_format::native) return true;
  return false;
}

bool holds_custom_kernels(const program& p) {
  return std::ranges::any_of(p.kernels(), [](const auto& kernel) {
    return is_hip_kernel(*kernel.second) && !is_known_kernel(*kernel.second);
  });
}

bool needs_consent(const program& p) { return holds_native(p) || holds_custom_kernels(p); }

packed_section sign_native(const std::vector<packed_section>& sections, const signing_key& key) {
  auto message = signed_message([&](section_kind kind) -> std::optional<section_row> {
    for (const packed_section& s : sections)
      if (s.kind == kind) return section_row{kind, s.codec, 0, s.stored.size(), s.raw_bytes, s.hash};
    if (kind == section_kind::steps) return std::nullopt;
    throw error(error_kind::internal, "a file without section " + std::string(enum_name(kind)) + " cannot be signed");
  });
  signature_block block = key.sign(message);
  std::vector<std::byte> bytes(block.begin(), block.end());
  content_hash hash = blake3(bytes);
  return {section_kind::signature, codec::raw, bytes.size(), hash, std::move(bytes)};
}

std::optional<public_key> native_signer(open_container& file) {
  if (!file.has(section_kind::signature)) return std::nullopt;
  // A section's copy is verified against the hash in its row whenever the section is read.
  auto message = signed_message([&](section_kind kind) {
    return kind == section_kind::steps && !file.has(kind) ? std::nullopt : std::optional(file.row(kind));
  });
  const auto signer = signer_of_message(file.raw(section_kind::signature), message);
  if (!signer) throw error(error_kind::corrupted, "its signature does not match the program");
  return signer;
}

void require_consent(const program& p, open_container& file, const native_consent& consent) {
  if (consent.allow_unsigned || !needs_consent(p)) return;
  const std::optional<public_key> signer = native_signer(file);
  if (consent.trusts(signer)) return;
  const std::string what = holds_native(p) ? "its native code " : "its custom operators are HIP kernels, whose code ";
  throw error(error_kind::untrusted,
              what + consent.complaint(signer) +
                  "; add the signer's public key to ~/.config/kiln/trusted_keys or --cache-trust FILE, compile the "
                  "model here, or run with --allow-unsigned-native");
}

}  // namespace kiln::container
