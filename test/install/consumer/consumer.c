/* A program outside of Kiln's tree: it finds the header, links the library, and gets an error with a message. */
#include <kiln/kiln.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  kiln_program* program = NULL;
  kiln_status status = kiln_program_open("not there.kiln", 1, &program);
  printf("%d %s: %s\n", kiln_api_version(), kiln_status_name(status), kiln_last_error());
  return kiln_api_version() == KILN_API_VERSION && status == KILN_MISSING_FILE && program == NULL &&
                 strstr(kiln_last_error(), "not there.kiln") != NULL
             ? 0
             : 1;
}
