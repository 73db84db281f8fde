#include "spirv/hip/answer.hpp"

#include <cstring>
#include <type_traits>

namespace kiln::spirv {
namespace {

enum class outcome : std::uint8_t { compiled, source_mistake, refusal };

class writer {
 public:
  std::string text;
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void number(T v) {
    text.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  void bytes(std::string_view v) {
    number(v.size());
    text += v;
  }
  void bytes(const std::vector<std::byte>& v) {
    bytes(std::string_view(reinterpret_cast<const char*>(v.data()), v.size()));
  }
};

class reader {
 public:
  explicit reader(std::string_view text) : rest_(text) {}
  template <class T>
  T number() {
    T v;
    std::memcpy(&v, take(sizeof v).data(), sizeof v);
    return v;
  }
  std::string_view bytes() { return take(number<std::size_t>()); }
  std::vector<std::byte> list() {
    std::string_view v = bytes();
    const auto* begin = reinterpret_cast<const std::byte*>(v.data());
    return {begin, begin + v.size()};
  }

 private:
  std::string_view take(std::size_t count) {
    if (count > rest_.size())
      throw error(error_kind::internal, "a forked copy of this process returned a truncated answer");
    std::string_view result = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return result;
  }
  std::string_view rest_;
};

void pack(writer& out, const compiled_source& s) {
  out.number(outcome::compiled);
  out.bytes(s.words);
  out.bytes(s.warnings);
  out.number(s.kernels.size());
  for (const hip_kernel& k : s.kernels) {
    out.bytes(k.symbol);
    out.bytes(k.name);
    out.number(k.max_threads);
    out.number(k.parameters.size());
    for (std::size_t i = 0; i < k.parameters.size(); ++i)
      out.number(k.parameters[i]), out.number(bool{k.reads_only[i]});
  }
  out.number(s.operators.size());
  for (const object& o : s.operators) out.bytes(serialize(o));
  out.number(s.included.size());
  for (const std::string& file : s.included) out.bytes(file);
}

}  // namespace

std::string pack_answer(const std::function<compiled_source()>& compile) {
  writer out;
  try {
    pack(out, compile());
  } catch (const source_error& e) {
    out = {};
    out.number(outcome::source_mistake);
    out.bytes(std::string_view(e.what()));
    out.bytes(e.diagnostics());
  } catch (const error& e) {
    out = {};
    out.number(outcome::refusal);
    out.number(e.kind());
    out.bytes(std::string_view(e.what()));
  } catch (const std::exception& e) {
    out = {};
    out.number(outcome::refusal);
    out.number(error_kind::internal);
    out.bytes(std::string_view(e.what()));
  }
  return out.text;
}

compiled_source unpack_answer(std::string_view answer) {
  reader in(answer);
  auto what = in.number<outcome>();
  if (what == outcome::source_mistake) {
    std::string summary(in.bytes());
    throw source_error(summary, std::string(in.bytes()));
  }
  if (what == outcome::refusal) {
    auto kind = in.number<error_kind>();
    throw error(kind, std::string(in.bytes()));
  }
  compiled_source s;
  s.words = in.list();
  s.warnings = in.bytes();
  s.kernels.resize(in.number<std::size_t>());
  for (hip_kernel& k : s.kernels) {
    k.symbol = in.bytes();
    k.name = in.bytes();
    k.max_threads = in.number<std::uint32_t>();
    std::size_t count = in.number<std::size_t>();
    for (std::size_t i = 0; i < count; ++i)
      k.parameters.push_back(in.number<kernel_parameter>()), k.reads_only.push_back(in.number<bool>());
  }
  std::size_t operators = in.number<std::size_t>();
  for (std::size_t i = 0; i < operators; ++i) s.operators.push_back(deserialize_object(in.list()));
  std::size_t included = in.number<std::size_t>();
  for (std::size_t i = 0; i < included; ++i) s.included.emplace_back(in.bytes());
  return s;
}

}  // namespace kiln::spirv
