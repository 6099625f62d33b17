/* The program's first instruction: no C library is there to do it. */
#include "smi.h"

#if defined(__x86_64__)
__asm__(".globl _start\n"
        "_start:\n"
        "    xor %ebp, %ebp\n"
        "    mov %rsp, %rdi\n"
        "    and $-16, %rsp\n"
        "    call begin\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n"
        "_start:\n"
        "    mov x29, #0\n"
        "    mov x30, #0\n"
        "    mov x0, sp\n"
        "    bl begin\n");
#endif

int run(int count, char **arguments);

char **environ;

/* The kernel leaves the count, the arguments and the environment on the stack. */
__attribute__((used)) _Noreturn void begin(long *stack)
{
    int count = (int)stack[0];
    char **arguments = (char **)(stack + 1);
    environ = arguments + count + 1;
    stop(run(count, arguments));
}
