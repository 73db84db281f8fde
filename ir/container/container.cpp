#include "ir/container/container.hpp"

#include <algorithm>
#include <limits>
#include <new>

#include "ir/container/native_signature.hpp"
#include "ir/container/program_limits.hpp"
#include "ir/container/program_section.hpp"
#include "ir/container/sections.hpp"
#include "ir/container/signed_native.hpp"
#include "ir/error.hpp"
#include "ir/invalid_shape.hpp"
#include "ir/trust/native_consent.hpp"

namespace kiln {

using namespace container;

namespace {

// Runs `read` and turns every exception into an error that names the file. Once the header is verified, an invalid
// program means a corrupted file too, because the writer validates programs.
template <class Read>
auto reading(const std::filesystem::path& file, Read read) {
  try {
    return read();
  } catch (const error& e) {
    const bool damage = e.kind() == error_kind::invalid_model || e.kind() == error_kind::usage ||
                        e.kind() == error_kind::internal || e.kind() == invalid_shape;
    std::string message = e.what();
    if (!message.starts_with(file.string())) message = file.string() + ": " + message;
    throw error(damage ? error_kind::corrupted : e.kind(), std::move(message));
  } catch (const std::bad_alloc&) {
    throw error(error_kind::unsupported, file.string() + ": not enough memory to read it");
  } catch (const std::exception& e) {
    throw error(error_kind::corrupted, file.string() + ": " + e.what());
  }
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::byte> as_bytes_vector(std::string_view text) {
  auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

// Checks that every referenced kernel is in the program, so that a missing one is reported here and not later.
void check_kernels(const program& p) {
  for (const module& m : p.modules())
    for (const instruction& i : m.instructions())
      if (const auto* c = i.op().get_if<code_object>()) p.kernel(content_hash::from_hex(c->payload));
}

void pack_extras(const container_extras& extras, int level, std::vector<packed_section>& sections) {
  if (!extras.tuning_hints.empty())
    sections.push_back(pack(section_kind::tuning_hints, as_bytes_vector(extras.tuning_hints), level));
  if (!extras.objects.empty()) sections.push_back(pack(section_kind::objects, encode_objects(extras.objects), level));
}

// `which`: program or steps.
program read_verified(open_container& file, section_kind which, weight_check check) {
  verify_manifest(as_text(file.raw(section_kind::manifest)));
  auto tensors = decode_weights_index(file.raw(section_kind::weights_index), file.weights().size());
  const std::uint64_t verified =
      check == weight_check::at_once ? std::numeric_limits<std::uint64_t>::max() : verified_at_once;
  verify_weights(tensors, file.weights(), verified);
  weight_source weights(std::move(tensors), file.weights(), file.file(), verified, file.path().string());
  program p;
  try {
    p = decode_program(file.raw(which),
                       [&](std::uint32_t tensor, shape type) { return weights.get(tensor, std::move(type)); });
  } catch (const error& e) {
    if (e.kind() != error_kind::unsupported || file.header().written_by <= parse_version(kiln_version())) throw;
    throw error(error_kind::newer_version, std::string(e.what()) + " (written by Kiln " +
                                               version_text(file.header().written_by) + ", this is " +
                                               std::string(kiln_version()) + ")");
  }
  for (auto& [hash, payload] : decode_kernels(file.raw(section_kind::kernels))) p.add_kernel(hash, payload);
  check_kernels(p);
  if (file.has(section_kind::steps)) p.erase_unused_kernels();  // those of the other program
  p.validate();
  return p;
}

program read_verified(open_container& file, const native_consent& consent, weight_check check) {
  program p = read_verified(file, section_kind::program, check);
  require_consent(p, file, consent);
  return p;
}

std::optional<program> read_verified_steps(open_container& file, const native_consent& consent, weight_check check) {
  if (!file.has(section_kind::steps)) return std::nullopt;
  program p = read_verified(file, section_kind::steps, check);
  if (holds_native(p)) throw error(error_kind::corrupted, "the steps of a decoder have native code");
  require_consent(p, file, consent);
  return p;
}

container_extras read_verified_extras(open_container& file) {
  container_extras extras;
  if (file.has(section_kind::tuning_hints)) extras.tuning_hints = as_text(file.raw(section_kind::tuning_hints));
  if (file.has(section_kind::objects)) extras.objects = decode_objects(file.raw(section_kind::objects));
  return extras;
}

// Decodes the encoded sections as a reader would, so that no unreadable file is written. check_writable has already
// checked the limits for which a node can be named.
void check_readable(std::string_view manifest, const std::vector<std::byte>& encoded,
                    const weight_collection& weights) {
  try {
    verify_manifest(manifest);
    decode_program(encoded, [&](std::uint32_t tensor, shape type) {
      return literal(std::move(type), weights.full_bytes(tensor), nullptr);
    });
  } catch (const error& e) {
    throw error(error_kind::unsupported, std::string("the program is larger than the file format allows: ") + e.what());
  }
}

}  // namespace

std::string_view kiln_version() { return KILN_VERSION; }

void write_program(const program& p, const std::filesystem::path& file, const write_options& options) {
  p.validate();
  check_kernels(p);
  check_writable(p);
  std::vector<const program*> programs{&p};
  if (options.steps) programs.push_back(options.steps);
  for (const program* steps : std::span(programs).subspan(1)) {
    steps->validate();
    check_kernels(*steps);
    check_writable(*steps);
    if (holds_native(*steps)) throw error(error_kind::usage, "the steps of a decoder must have portable kernels");
  }
  weight_collection weights(programs);
  int level = options.compression_level;
  std::vector<packed_section> sections;
  // Stored uncompressed, so that a person can read it with any tool.
  std::vector<std::byte> manifest = as_bytes_vector(make_manifest(p, options)), encoded = encode_program(p, weights);
  check_readable(as_text(manifest), encoded, weights);
  content_hash manifest_hash = blake3(manifest);
  std::uint64_t manifest_bytes = manifest.size();
  sections.push_back({section_kind::manifest, codec::raw, manifest_bytes, manifest_hash, std::move(manifest)});
  sections.push_back(pack(section_kind::program, std::move(encoded), level));
  program::kernel_table kernels = p.kernels();
  if (options.steps) kernels.insert(options.steps->kernels().begin(), options.steps->kernels().end());
  sections.push_back(pack(section_kind::kernels, encode_kernels(kernels), level));
  sections.push_back(pack(section_kind::weights_index, encode_weights_index(weights.tensors()), level));
  if (options.steps) {
    std::vector<std::byte> steps = encode_program(*options.steps, weights);
    check_readable(as_text(sections.front().stored), steps, weights);
    sections.push_back(pack(section_kind::steps, std::move(steps), level));
  }
  pack_extras(options.extras, level, sections);
  if (options.sign_with && std::ranges::any_of(programs, [](const program* each) { return needs_consent(*each); }))
    sections.push_back(sign_native(sections, *options.sign_with));
  file_header header;
  header.version = needed_version(p);
  header.written_by = parse_version(kiln_version());
  write_container(file, std::move(header), sections, {weights.section_bytes(), [&](output_file& out) {
                                                        std::uint64_t begin = out.size();
                                                        for (std::size_t t = 0; t < weights.tensors().size(); ++t) {
                                                          out.pad_to(begin + weights.tensors()[t].offset);
                                                          out.write(weights.bytes(t));
                                                        }
                                                      }});
}

program read_program(const std::filesystem::path& file) { return read_program(file, native_consent{}); }

program read_program(const std::filesystem::path& file, const native_consent& consent, weight_check check) {
  return reading(file, [&] {
    open_container opened(file);
    program p = read_verified(opened, consent, check);
    // A file with a damaged section must not be used, even if the damage is in the extras.
    read_verified_extras(opened);
    if (opened.has(section_kind::steps)) opened.raw(section_kind::steps);
    return p;
  });
}

std::optional<program> read_steps(const std::filesystem::path& file) { return read_steps(file, native_consent{}); }

std::optional<program> read_steps(const std::filesystem::path& file, const native_consent& consent,
                                  weight_check check) {
  return reading(file, [&] {
    open_container opened(file);
    return read_verified_steps(opened, consent, check);
  });
}

container_extras read_extras(const std::filesystem::path& file) {
  return reading(file, [&] {
    open_container opened(file);
    return read_verified_extras(opened);
  });
}

void replace_extras(const std::filesystem::path& source, const std::filesystem::path& target,
                    const container_extras& extras) {
  reading(source, [&] {
    open_container opened(source);
    verify_weights(decode_weights_index(opened.raw(section_kind::weights_index), opened.weights().size()),
                   opened.weights());
    std::vector<packed_section> sections;
    for (auto kind :
         {section_kind::manifest, section_kind::program, section_kind::kernels, section_kind::weights_index})
      sections.push_back(opened.packed(kind));
    if (opened.has(section_kind::steps)) sections.push_back(opened.packed(section_kind::steps));
    pack_extras(extras, write_options{}.compression_level, sections);
    if (opened.has(section_kind::signature))
      sections.push_back(opened.packed(section_kind::signature));  // the signature does not cover the extras
    write_container(target, opened.header(), sections,
                    {opened.weights().size(), [&](output_file& out) { out.write(opened.weights()); }});
  });
}

container_info inspect(const std::filesystem::path& file) {
  return reading(file, [&] {
    open_container opened(file);
    container_info info;
    info.format_version = opened.header().version;
    info.written_by = version_text(opened.header().written_by);
    info.file_bytes = opened.header().file_bytes;
    for (const section_row& s : opened.header().sections)
      info.sections.push_back({std::string(enum_name(s.kind)), std::string(enum_name(s.codec)), s.offset,
                               s.stored_bytes, s.raw_bytes, s.hash});
    info.manifest = as_text(opened.raw(section_kind::manifest));
    verify_manifest(info.manifest);
    for (const auto& [hash, payload] : decode_kernels(opened.raw(section_kind::kernels)))
      info.kernels.push_back({hash, payload->size()});
    for (const stored_tensor& t :
         decode_weights_index(opened.raw(section_kind::weights_index), opened.weights().size())) {
      ++info.tensors;
      info.folded_tensors += t.folded();
      info.stored_weight_bytes += t.stored_bytes;
      info.full_weight_bytes += t.full_bytes;
    }
    return info;
  });
}

// Trusts any signer, because nothing is run.
void check(const std::filesystem::path& file) {
  const native_consent anybody{.allow_unsigned = true};
  read_program(file, anybody);
  read_steps(file, anybody);
}

}  // namespace kiln
