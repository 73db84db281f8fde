#include "ir/printable.hpp"

#include <gtest/gtest.h>

#include <random>

using namespace kiln;

TEST(printable, text_stays) {
  for (const char* text : {"", "layer1/conv.weight", "höhe × breite", "日本語", "naïve 🙂", "a\\b"})
    EXPECT_EQ(printable(text), text);
}

TEST(printable, controls_become_escapes) {
  EXPECT_EQ(printable("x\x1b]0;pwn\x07"), "x\\x1b]0;pwn\\x07");
  EXPECT_EQ(printable("two\nlines\r\tand a tab"), "two\\nlines\\r\\tand a tab");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\x7f\xc2\x9b"
                      "31m"),
            "\\x7f\\u009b31m")
      << "DEL, and CSI as one C1 control";
  EXPECT_EQ(printable_lines("two\n\tlines\x1b[2J\r"), "two\n\tlines\\x1b[2J\\r");
}

TEST(printable, what_reorders_or_hides_text_becomes_escapes) {
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "abc"),
            "\\u202eabc");
  EXPECT_EQ(printable("\xe2\x81\xa6\xe2\x81\xa9\xe2\x80\x8b\xef\xbb\xbf\xe2\x80\xa8"),
            "\\u2066\\u2069\\u200b\\ufeff\\u2028");
  EXPECT_EQ(printable("\xf3\xa0\x80\xa1"), "\\U000e0021") << "tag characters";
}

TEST(printable, what_is_not_utf8_becomes_bytes) {
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xc0\x80"), "\\xc0\\x80") << "overlong";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond Unicode";
  EXPECT_EQ(printable("a\xe2\x82"), "a\\xe2\\x82") << "cut";
}

TEST(printable, names_of_files) {
  EXPECT_EQ(printable_name("a\x1b[0m\xe2\x80\xae\xff"
                           "ö\n"),
            "a_[0m__ö_");
}

TEST(printable, random_bytes_become_printable_ones) {
  std::mt19937 random(7);
  for (int n = 0; n < 2000; ++n) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += static_cast<char>(random() % (n % 2 ? 256 : 0xf0 - 0x18) + (n % 2 ? 0 : 0x18));
    const std::string shown = printable(text);
    EXPECT_EQ(printable(shown), shown);
    for (char c : shown) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  }
}
