/* A PI controller. */
#ifndef PID_H
#define PID_H

struct controller {
    double proportional, integral; /* gains */
    double sum;                    /* of the errors so far */
};

/* The next setting, from 0 to 100, for this error. */
double controller_step(struct controller *controller, double error);

#endif
